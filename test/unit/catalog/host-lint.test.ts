/** What hosts are known to refuse, drop or shorten, and what is said about it. */
import { describe, expect, test } from 'vitest'
import { buildCatalog } from '../../../src/catalog/build-catalog.ts'
import { HOST_LIMITS } from '../../../src/catalog/lint/host-limits.ts'
import { lintHost } from '../../../src/catalog/lint/host-lint.ts'
import { Toolset } from '../../../src/catalog/view/toolset.ts'
import { Views } from '../../../src/catalog/view/view.ts'
import type { Entry } from '../../../src/catalog/inventory.ts'
import { NEVER, sourceOf, toolOf } from './fixtures.ts'

/** Of one server without prefixes, so that names are as they are given. */
const linted = (tools: Entry[], toolset = '', instructions?: string) => ({
  toolset,
  view: new Views().of(buildCatalog([sourceOf('a', { tools })], NEVER), { revision: '2026-07-28' }),
  instructions,
})
const lint = (host: string, tools: Entry[], instructions?: string) => {
  const one = linted(tools, '', instructions)
  return lintHost(host, one, [one]).map(({ tool, consequence, message, remedy }) => ({ tool, consequence, message, remedy }))
}
const toolsetOf = (discovery: 'full' | 'search', always: string[]): Toolset =>
  new Toolset([
    {
      name: 'few',
      place: '',
      description: undefined,
      choices: [{ servers: ['*'], tools: undefined, resources: undefined, prompts: undefined, where: {} }],
      always,
      override: {},
      confirm: [],
      discovery,
      budget: undefined,
      rate: undefined,
    },
  ])
const many = (count: number): Entry[] => Array.from({ length: count }, (_, at) => toolOf(`t${at}`))

describe('the table', () => {
  test.each(Object.entries(HOST_LIMITS))('%s says of each limit how it is known, and from where', (_host, limits) => {
    const all = [limits.name, limits.tools, limits.description, limits.instructions, limits.characters].filter(Boolean)
    for (const limit of all) {
      expect(limit?.from).toMatch(/#\d+|\.ts|\.rs|documentation|\.com|agent/)
      expect(['documented', 'source', 'reported']).toContain(limit?.evidence)
    }
  })
  test('knows the hosts that PRODUCT names', () => {
    const hosts = 'claude-desktop,claude-code,cursor,vscode,windsurf,codex,gemini,copilot-cli,zed,goose'
    expect(Object.keys(HOST_LIMITS)).toEqual(hosts.split(','))
  })
})

describe('names are counted as the host sees them', () => {
  test.each([
    ['claude-desktop', 64, 'breaks'],
    ['claude-code', 128 - 'mcp__trunkline__'.length, 'breaks'],
    ['cursor', 59 - 'trunkline'.length, 'breaks'],
    ['vscode', 64 - 'mcp_trunkline_'.length, 'degrades'],
    ['codex', 64 - 'mcp__trunkline__'.length, 'degrades'],
    ['gemini', 63 - 'mcp_trunkline_'.length, 'degrades'],
    ['copilot-cli', 64 - 'trunkline-'.length, 'breaks'],
    ['zed', 64, 'degrades'],
    ['goose', 64 - 'trunkline__'.length, 'breaks'],
  ])('%s takes %i characters and no more', (host, most, consequence) => {
    expect(lint(host, [toolOf('x'.repeat(most))])).toEqual([])
    expect(lint(host, [toolOf('x'.repeat(most + 1))])).toMatchObject([
      {
        consequence,
        message: expect.stringMatching(/^a name of \d+ characters/),
        remedy: expect.stringContaining(`naming.max_length: ${most}`),
      },
    ])
  })
  test('a dot in a name breaks all of Claude Desktop, and becomes another character in Gemini CLI', () => {
    expect(lint('claude-desktop', [toolOf('graph.list')])).toMatchObject([{ tool: 'graph.list', consequence: 'breaks' }])
    expect(lint('gemini', [toolOf('graph.list')])).toMatchObject([{ tool: 'graph.list', consequence: 'degrades' }])
    expect(lint('claude-desktop', [toolOf('graph_list-2')])).toEqual([])
  })
})

describe('counts and sizes', () => {
  test.each([
    ['cursor', 40, 'degrades'],
    ['vscode', 128, 'breaks'],
    ['windsurf', 100, 'breaks'],
    ['goose', 50, 'degrades'],
  ])('%s takes %i tools', (host, most, consequence) => {
    expect(lint(host, many(most))).toEqual([])
    expect(lint(host, many(most + 1))).toMatchObject([
      {
        tool: '',
        consequence,
        message: expect.stringContaining(`${most + 1} tools > ${most}: `),
        remedy: 'set discovery: search, or make a toolset that holds fewer',
      },
    ])
  })
  test('a toolset that fits is named', () => {
    const [whole, review] = [linted(many(41)), linted(many(14), 'review')]
    expect(lintHost('cursor', whole, [whole, review])[0]?.remedy).toBe('set discovery: search, or use toolset "review"')
    expect(lintHost('cursor', review, [whole, review])).toEqual([])
  })
  test('where hosts are to search, what they read at once is counted: what is always listed, and three tools to search with', () => {
    const searched = (always: string[]) => ({
      toolset: 'few',
      view: new Views().of(buildCatalog([sourceOf('a', { tools: many(200) })], NEVER), {
        revision: '2026-07-28',
        toolset: toolsetOf('search', always),
      }),
      instructions: undefined,
    })
    const names = Array.from({ length: 38 }, (_, at) => `t${at}`)
    for (const [always, findings] of [
      [names.slice(0, 37), 0],
      [names, 1],
    ] as const) {
      const one = searched([...always])
      expect(lintHost('cursor', one, [one])).toHaveLength(findings)
    }
  })
  test('Claude Code cuts long descriptions and instructions, counted in bytes', () => {
    expect(lint('claude-code', [toolOf('x', { description: 'é'.repeat(1_024) })], 'x'.repeat(2_048))).toEqual([])
    expect(lint('claude-code', [toolOf('x', { description: 'é'.repeat(1_025) })], 'x'.repeat(2_049))).toMatchObject([
      { tool: '', message: 'instructions of 2049 bytes > 2048: the rest is cut' },
      { tool: 'x', message: 'a description of 2050 bytes > 2048: the rest is cut' },
    ])
  })
})
