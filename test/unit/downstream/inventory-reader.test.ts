/** What is read of the lists of an odd server. */
import { expect, test } from 'vitest'
import type { Inventory } from '../../../src/catalog/inventory.ts'
import { readInventory } from '../../../src/downstream/lists/inventory-reader.ts'
import { DEFAULT_LIMITS } from '../../../src/downstream/options.ts'
import type { Link } from '../../../src/era/server/link.ts'
import { readServerMessage } from '../../../src/wire/message/envelope.ts'
import { Payload } from '../../../src/wire/message/payload.ts'

const PROMPTS = '{"prompts":[{"name":"p"}]}'

/** Reads a server with these tools, in JSON, and one prompt. */
const readTools = (
  tools: string,
  capabilities: object = { tools: {}, prompts: {} },
  {
    instructions,
    secret,
    known,
  }: { readonly instructions?: string | undefined; readonly secret?: string; readonly known?: Inventory } = {},
): Promise<Inventory> => {
  const results: Readonly<Record<string, string>> = { 'tools/list': `{"tools":[${tools}]}`, 'prompts/list': PROMPTS }
  const fetch = (method: string): Promise<Payload> => {
    const result = results[method] ?? '{}'
    // A transport takes the message.
    readServerMessage(Buffer.from(`{"jsonrpc":"2.0","id":1,"result":${result}}`))
    return Promise.resolve(Payload.at(Buffer.from(result)))
  }
  const link = { revision: '2025-11-25', era: 'legacy', transport: 'pipe', capabilities, instructions, fetch } as unknown as Link
  return readInventory(link, {
    limits: DEFAULT_LIMITS,
    legacyTtlMs: 1,
    legacyPollMs: 1,
    freshMs: 1,
    nowMs: () => 0,
    hasCredential: (json) => secret !== undefined && json.includes(secret),
    reached: () => undefined,
    known,
  })
}

const tool = (name: string): string => `{"name":"${name}","inputSchema":{"type":"object"}}`
const LONG = 'x'.repeat(200)

test.each([
  ['a line feed in its description', 'bad', `{"name":"bad","description":"${LONG}\n"}`],
  ['a line feed deep in its schema', 'bad', `{"name":"bad","inputSchema":{"properties":{"a":{"description":"${LONG}\n"}}}}`],
  ['an unknown escape in its description', 'bad', `{"name":"bad","description":"${LONG}\\x41"}`],
  ['an unknown escape in its name', '?', `{"name":"bad${LONG}\\x41"}`],
])('B271 an entry that is no JSON is left out, and nothing else: %s', async (_, name, bad) => {
  const { lists, leftOut, warnings } = await readTools(`${tool('a')},${bad},${tool('b')}`)
  expect([lists.tools.map(({ original }) => original), lists.prompts.length]).toEqual([['a', 'b'], 1])
  expect(leftOut).toEqual([{ kind: 'tools', name, reason: expect.stringContaining('is not valid JSON') as string }])
  expect(warnings).toEqual([])
})

test.each(['"Name":"b__delete"', '"NAME":"b__delete"', '"name":"b__delete"', '"na\\u006de":"b__delete"'])(
  'T-18 T-20 a tool that a host may read under another name is left out, and nothing else: %s',
  async (more) => {
    for (const double of [`{"name":"read",${more}}`, `{${more},"name":"read"}`]) {
      const { lists, leftOut } = await readTools(`${tool('a')},${double.replace('}', ',"inputSchema":{}}')},${tool('b')}`)
      expect(lists.tools.map(({ original }) => original)).toEqual(['a', 'b'])
      expect(leftOut.map(({ reason }) => reason)).toEqual(['has several keys that a host may read as name'])
    }
  },
)

test('B287 a list that no capability names is not asked for again, unless the server is another one by now', async () => {
  const first = await readTools(tool('a'), { tools: {} })
  const prompts = async (known: Inventory): Promise<number> =>
    (await readTools(tool('a'), { tools: {} }, { known })).lists.prompts.length
  const without: Inventory = { ...first, absent: ['prompts'] }
  expect(await prompts(without)).toBe(0)
  expect(await prompts({ ...without, revision: '2025-06-18' })).toBe(1)
  expect(await prompts({ ...without, capabilities: { tools: {}, resources: {} } })).toBe(1)
})

test('B287 of a list that no capability names is told, too, what is left out of it', async () => {
  const { lists, leftOut } = await readTools(`${tool('a')},{"name":"big","title":"${'x'.repeat(20_000)}"}`, { prompts: {} })
  expect(lists.tools.map(({ original }) => original)).toEqual(['a'])
  expect(leftOut.map(({ name }) => name)).toEqual(['big'])
})

test.each([
  [undefined, []],
  ['Ask for a key.', []],
  ['Use the key hush.', [expect.stringMatching(/^its instructions are withheld: they contain /) as string]],
])('T-14 instructions with a credential are withheld, others are not: %j', async (instructions, told) => {
  const { warnings, ...read } = await readTools('{"name":"a"}', undefined, { instructions, secret: 'hush' })
  expect(read.instructions).toBe(told.length === 0 ? instructions : undefined)
  expect(warnings).toEqual(told)
})
