import { describe, expect, test } from 'vitest'
import { exposeResult } from '../../../src/catalog/view/expose-result.ts'
import { exposeUri } from '../../../src/catalog/names/uris.ts'
import { project } from '../../../src/era/host/projections.ts'
import type { OutputForm } from '../../../src/era/host/projections.ts'
import { Fidelity } from '../../../src/rpc/fidelity.ts'
import { join, Payload } from '../../../src/wire/message/payload.ts'
import type { Revision } from '../../../src/wire/protocol/revisions.ts'

const SILENT = { debug: () => undefined, info: () => undefined }
const projected = (
  result: string,
  method: string,
  revision: Revision,
  output: OutputForm = 'plain',
  edit: (result: Payload) => void = () => undefined,
): string => {
  const caller = { principal: 'local', revision, capabilities: {}, scope: { server: undefined }, session: undefined }
  const call = { ref: 1, method, caller }
  const payload = Payload.at(Buffer.from(result))
  edit(payload)
  return join(project(payload, call, new Fidelity('a', SILENT), () => output).parts()).toString()
}

const REVISIONS: readonly Revision[] = ['2024-11-05', '2025-03-26', '2025-06-18', '2025-11-25', '2026-07-28']
const AUDIO = '{ "type":"audio", "data":"AAEC", "mimeType":"audio/wav", "x":1.0 }'
const LINK = '{"type":"resource_link","uri":"a+file:///r","name":"r","size":9007199254740993}'
const TITLED = '{"type":"resource_link","title":"Report","uri":"a+file:///r","name":"r"}'
const OTHERS = '{"type":"text","text":"\\u0061udio"} ,{"type":"resource","resource":{"uri":"u:1","blob":"AA=="}}'
const text = (words: string): string => JSON.stringify({ type: 'text', text: words })

/** The block, the first revision that knows it, and what stands there for older hosts. */
const BLOCKS = [
  ['audio', AUDIO, '2025-03-26', text('[audio audio/wav, 3 bytes]')],
  ['resource_link', LINK, '2025-06-18', text('r: a+file:///r')],
  ['resource_link with a title', TITLED, '2025-06-18', text('Report: a+file:///r')],
] as const

describe.each(REVISIONS)('for a host of %s', (revision) => {
  test.each(BLOCKS)('B107 %s is a text where it is not known, and no other byte changes', (_, block, since, words) => {
    const here = revision >= since ? block : words
    for (const [method, around] of [
      ['tools/call', (content: string) => `{"n":1.0, "content" : [${OTHERS}, ${content}],"isError":false}`],
      ['tasks/result', (content: string) => `{"content":[${content},${content}]}`],
      ['prompts/get', (content: string) => `{"messages":[{"role":"user","content": ${content}} ,{"role":"user","content":{}}]}`],
    ] as const)
      expect(projected(around(block), method, revision)).toBe(around(here))
  })

  test('B107 what only looks like such a block stays', () => {
    for (const result of [
      '{"content":[{"type":"text","text":"\\"audio\\" and \\"resource_link\\""}]}',
      '{"content":["audio",["resource_link"]],"_meta":{"type":"audio"}}',
      '{"contents":[{"type":"audio"}]}',
    ])
      expect(projected(result, 'tools/call', revision)).toBe(result)
    const read = `{"contents":[${LINK}]}`
    expect(projected(read, 'resources/read', revision)).toBe(read)
  })
})

/** What stands in place of `content` beside this structured content, by the host's revision. */
const STRUCTURED = '{"n":1.0, "\\u0061":9007199254740993}'
const withStructured = (content: string, structured: string): string =>
  `{"content" : [${content}], "structuredContent": ${structured} ,"isError":false}`
const beside = (content: string, added: string): string => [content, added].filter(Boolean).join(',')

describe.each(REVISIONS)('B107 B108 B283 structured content for a host of %s', (revision) => {
  const isOld = revision < '2025-06-18'
  const isModern = revision === '2026-07-28'

  test.each([
    ['no block', ''],
    ['an embedded text resource', '{"type":"resource","resource":{"uri":"u:1","mimeType":"text/plain","text":"\\"text\\""}}'],
    ['an image named text', '{"type":"image","data":"AA==","mimeType":"image/png","_meta":{"type":"text"}}'],
  ])('beside %s it stays, and old hosts get it as text, too', (_, blocks) => {
    const result = withStructured(blocks, STRUCTURED)
    for (const method of ['tools/call', 'tasks/result'])
      expect(projected(result, method, revision)).toBe(
        isOld ? withStructured(beside(blocks, text(STRUCTURED)), STRUCTURED) : result,
      )
  })

  test.each(['{"type":"text","text":"said"}', '{"t\\u0079pe":"t\\u0065xt","text":"said"}', OTHERS])(
    'beside the text %s nothing changes',
    (blocks) => {
      const result = withStructured(blocks, STRUCTURED)
      expect(projected(result, 'tools/call', revision)).toBe(result)
    },
  )

  test('B282 without content, or with null, it gets one', () => {
    const expected = `{"content":[${isOld ? text('{"a":1}') : ''}],"structuredContent":{"a":1}}`
    expect(projected('{"structuredContent":{"a":1}}', 'tools/call', revision)).toBe(expected)
    // B282 Go writes null for an empty list.
    expect(projected('{"content":null,"structuredContent":{"a":1}}', 'tools/call', revision)).toBe(expected)
  })

  test.each(['[1.0]', '"a"', '0', 'true'])('the value %s is wrapped where the schema is, and nowhere else', (value) => {
    const plain = withStructured('{"type":"text","text":"said"}', value)
    const wrapped = withStructured('{"type":"text","text":"said"}', `{"result":${value}}`)
    for (const form of ['by value', 'wrapped'] as const)
      expect(projected(plain, 'tools/call', revision, form)).toBe(isOld || isModern ? plain : wrapped)
    expect(projected(plain, 'tools/call', revision, 'plain')).toBe(plain)
  })

  test('an object is wrapped where the schema is', () => {
    const wrapped = withStructured(text(STRUCTURED), `{"result":${STRUCTURED}}`)
    const result = withStructured('', STRUCTURED)
    for (const form of ['plain', 'by value'] as const)
      expect(projected(result, 'tools/call', revision, form)).toBe(isOld ? withStructured(text(STRUCTURED), STRUCTURED) : result)
    expect(projected(result, 'tools/call', revision, 'wrapped')).toBe(
      isOld ? withStructured(text(STRUCTURED), STRUCTURED) : isModern ? result : wrapped,
    )
  })

  test('B282 null is no structured content, and nothing is made of it', () => {
    for (const result of ['{"structuredContent":null}', withStructured('', 'null'), '{"content":null,"structuredContent":null}'])
      for (const form of ['plain', 'by value', 'wrapped'] as const)
        expect(projected(result, 'tools/call', revision, form)).toBe(result)
  })

  test('B109 what was changed inside the blocks before stays changed', () => {
    const link = (uri: string): string => `{"type":"resource_link","uri":"${uri}","name":"r"}`
    const inner = (uri: string): string => `{"type":"resource","resource":{"uri":"${uri}","text":"x"}}`
    const blocks = (prefix: string): string => `${link(`${prefix}m:1`)},${inner(`${prefix}m:2`)}`
    const expose = (result: Payload): void => exposeResult(result, 'content', (uri) => exposeUri('fs', uri))
    const read = (form: OutputForm): string =>
      projected(withStructured(blocks(''), '{"a":1}'), 'tools/call', revision, form, expose)
    const old = withStructured(`${text('r: fs+m:1')},${inner('fs+m:2')},${text('{"a":1}')}`, '{"a":1}')
    const plain = withStructured(blocks('fs+'), '{"a":1}')
    expect(read('plain')).toBe(isOld ? old : plain)
    expect(read('wrapped')).toBe(
      isOld ? old : isModern ? plain : withStructured(`${blocks('fs+')},${text('{"a":1}')}`, '{"result":{"a":1}}'),
    )
  })

  test('B107 beside structured content a block is projected like any other', () => {
    const result = withStructured(AUDIO, '{"a":1}')
    const heard = revision < '2025-03-26' ? text('[audio audio/wav, 3 bytes]') : AUDIO
    expect(projected(result, 'tools/call', revision)).toBe(
      isOld ? withStructured(`${heard},${text('{"a":1}')}`, '{"a":1}') : result,
    )
  })

  test('B107 a block is known by its type, however that is spelled', () => {
    const escaped = '{"type":"resource\\u005flink","uri":"m:1","name":"r"}'
    expect(projected(`{"content":[${escaped}]}`, 'tools/call', revision)).toBe(
      `{"content":[${isOld ? text('r: m:1') : escaped}]}`,
    )
  })

  test('B107 a message of a prompt may hold several blocks', () => {
    const result = `{"messages":[{"role":"user","content":[${OTHERS},${LINK}]}]}`
    const words = `{"messages":[{"role":"user","content":[${OTHERS},${text('r: a+file:///r')}]}]}`
    expect(projected(result, 'prompts/get', revision)).toBe(isOld ? words : result)
  })
})

test('B107 each replaced block is recorded once; a block that the host knows is not', () => {
  const fidelity = new Fidelity('a', SILENT)
  const caller = {
    principal: 'local',
    revision: '2024-11-05',
    capabilities: {},
    scope: { server: undefined },
    session: undefined,
  } as const
  const content = Payload.at(Buffer.from(`{"content":[${OTHERS},${AUDIO},${LINK}]}`))
  project(content, { ref: 1, method: 'tools/call', caller }, fidelity, () => 'plain')
  expect(fidelity.counts).toMatchObject([{ rule: 'B107', count: 2 }])
})
