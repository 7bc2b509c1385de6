/** A call as a line to paste: what a shell makes of it. */
import { execFileSync } from 'node:child_process'
import { describe, expect, test } from 'vitest'
import { readEvents } from '../../../src/dashboard/model/event-lines.ts'
import { asCommand, asCurl, asInspector, asTest } from '../../../src/dashboard/model/snippets.ts'
import { lineOf } from '../../../src/dashboard/model/text.ts'

const HOSTILE = `it's "$(touch /tmp/x)" \`id\` \\ !`
const called = {
  method: 'tools/call',
  name: HOSTILE,
  params: JSON.stringify({ name: HOSTILE, arguments: { q: HOSTILE } }),
  url: 'http://127.0.0.1:7420/mcp/review',
  toolset: 'review',
  hasAuth: true,
  named: [],
}
/** The words that a shell makes of a line. */
const words = (line: string): string[] =>
  execFileSync('sh', ['-c', `set -- ${line}\nfor word in "$@"; do printf '%s\\0' "$word"; done`], {
    env: { TRUNKLINE_TOKEN: 'secret' },
  })
    .toString()
    .split('\0')
    .slice(0, -1)

describe('a shell takes apart what a server called something hostile', () => {
  test('curl', () => {
    const found = words(asCurl(called))
    expect(found.slice(0, 3)).toEqual(['curl', '-sS', called.url])
    expect(found).toContain('Authorization: Bearer secret')
    expect(JSON.parse(found.at(-1) ?? '')).toMatchObject({
      method: 'tools/call',
      params: { name: HOSTILE, arguments: { q: HOSTILE }, _meta: {} },
    })
  })

  test('Inspector and trunkline', () => {
    expect(words(asInspector(called) ?? '').slice(-4)).toEqual([
      '--tool-name',
      HOSTILE,
      '--tool-args-json',
      JSON.stringify({ q: HOSTILE }),
    ])
    expect(words(asCommand(called) ?? '')).toEqual([
      'trunkline',
      'call',
      HOSTILE,
      '--args',
      JSON.stringify({ q: HOSTILE }),
      '--toolset',
      'review',
    ])
    expect(asCommand({ ...called, method: 'prompts/get' })).toBeUndefined()
  })

  test('numbers are spelled as they were', () => {
    const exact = '{"id":12345678901234567890,"share":1.0}'
    const params = `{"name":"a","arguments":${exact}}`
    expect(words(asInspector({ ...called, params }) ?? '')).toContain(exact)
    expect(words(asCommand({ ...called, params }) ?? '')).toContain(exact)
    expect(words(asCommand({ ...called, params: '{"name":"a"}' }) ?? '')).toContain('{}')
  })

  test('the Inspector reads a resource by its URI, sends a credential only where one is needed, and has no other method', () => {
    const read = { ...called, method: 'resources/read', name: 'file:///a b' }
    expect(words(asInspector(read) ?? '').slice(-2)).toEqual(['--uri', 'file:///a b'])
    expect(asInspector({ ...called, method: 'prompts/get' })).toBeUndefined()
    expect(words(asInspector(read) ?? '')).toContain('Authorization: Bearer secret')
    expect(asInspector({ ...read, hasAuth: false })).not.toContain('--header')
  })

  test('a name that no header holds is sent as base64', () => {
    expect(words(asCurl({ ...called, name: 'Größe' }))).toContain('Mcp-Name: =?base64?R3LDtsOfZQ==?=')
  })

  test('a test names it as a string', () => {
    expect(asTest(called)).toContain(`test(${JSON.stringify(`${HOSTILE} answers`)}`)
  })
})

test('what would turn a text around, or is not seen, is shown as its code', () => {
  expect(lineOf('a\u202eb\u001b[31m\nc')).toBe('a⟨U+202E⟩b⟨U+001B⟩[31m ⏎ c')
  expect(lineOf('مرحبا 👨‍👩‍👧')).toBe('مرحبا 👨‍👩‍👧')
  expect(lineOf('x'.repeat(1_000))).toHaveLength(401)
})

test('events are read however their bytes are split', async () => {
  const bytes = new TextEncoder().encode(': hello\n\nevent: message\ndata: {"a":"ü"}\r\n\r\ndata: one\ndata: two\n\ndata: cut')
  const read = async (size: number): Promise<string[]> => {
    const stream = new ReadableStream<Uint8Array>({
      start: (controller) => {
        for (let at = 0; at < bytes.length; at += size) controller.enqueue(bytes.slice(at, at + size))
        controller.close()
      },
    })
    const found: string[] = []
    for await (const data of readEvents(stream)) found.push(data)
    return found
  }
  for (const size of [1, 2, 3, 7, 1_000]) expect(await read(size)).toEqual(['{"a":"ü"}', 'one\ntwo'])
})
