import { describe, expect, test } from 'vitest'
import { project } from '../../../src/era/projections.ts'
import { Fidelity } from '../../../src/rpc/fidelity.ts'
import { join, Payload } from '../../../src/wire/payload.ts'
import type { Revision } from '../../../src/wire/revisions.ts'

const SILENT = { debug: () => undefined, info: () => undefined }
const projected = (result: string, method: string, revision: Revision): string => {
  const caller = { principal: 'local', revision, capabilities: {}, scope: { server: undefined }, session: undefined }
  const call = { ref: 1, method, caller }
  return join(project(Payload.at(Buffer.from(result)), call, new Fidelity('a', SILENT)).parts()).toString()
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
