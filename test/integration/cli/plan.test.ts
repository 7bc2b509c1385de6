/** `trunkline plan`: what a reload would change, shown before it does; and what `reload` says that it did. */
import { expect, test } from 'vitest'
import { commandLine } from '../../support/cli.ts'
import type { Cli } from '../../support/cli.ts'

const entry = (cli: Cli, log: string, more = ''): string =>
  cli.fake('good', log).replace(' }', `${more}, lifecycle: { spare: 0 } }`)
const file = (servers: string, more = ''): string => `reload: { watch: false }\n${more}servers:\n${servers}`
const starts = (cli: Cli, log: string): number => cli.log(log).filter((line) => line.startsWith('start')).length

test('plan shows servers, entries, tokens and restarts, applies nothing, and reload then does exactly that', async () => {
  await using cli = await commandLine()
  await cli.write(
    'trunkline.yaml',
    file(`  a: ${entry(cli, 'a.log')}\n  b: ${entry(cli, 'b.log')}\n  old: ${entry(cli, 'old.log')}\n`),
  )
  const up = await cli.up()
  for (const key of ['a', 'b', 'old']) await up.said(new RegExp(`"server":"${key}".*server is ready`))
  expect(await cli.here('plan')).toMatchObject({ code: 0, stdout: 'nothing changes\n' })

  await cli.write(
    'trunkline.yaml',
    file(
      `  a: ${entry(cli, 'a.log', ', env: { WORD: x }')}\n  b: ${entry(cli, 'b.log', ', filter: { deny: [fail] }, tools: { add: { title: Sum } }, timeouts: { idle: 9s }')}\n  c: ${entry(cli, 'c.log')}\n`,
    ),
  )
  const shown = await cli.here('plan')
  expect(shown.code).toBe(0)
  const rows = shown.stdout.split('\n').map((line) => line.trim().replaceAll(/ {2,}/g, ' | '))
  expect(rows).toEqual([
    '+ | server | c | new | starts; its lists are known then',
    '- | server | old | gone | ends, 0 calls in flight',
    '~ | server | a | env changed | restart, 0 calls in flight',
    '~ | server | b | timeouts, filter, tools, resources or prompts changed | keeps running',
    '~ | tool | b__add | changed | +3 tok',
    expect.stringMatching(/^- \| tool \| b__fail \| gone \| -\d+ tok$/),
    ...['echo', 'fail', 'refuse', 'wait', 'env', 'add'].map((name) =>
      expect.stringMatching(new RegExp(`^- \\| tool \\| old__${name} \\| gone \\| -\\d+ tok$`)),
    ),
    expect.stringMatching(/^all: 18 → 11 tools, \d+ → \d+ tok \| nothing else restarts$/),
    '',
  ])
  expect(await cli.here('reload', '--dry-run')).toEqual(shown)
  expect(starts(cli, 'a.log') + starts(cli, 'b.log') + starts(cli, 'old.log')).toBe(3)
  expect((await cli.here('tools')).stdout).toContain('old__echo')

  const machine = JSON.parse((await cli.here('plan', '--json')).stdout) as object
  const done = JSON.parse((await cli.here('reload', '--json')).stdout) as { plan: object }
  expect(done).toMatchObject({ kind: 'applied', added: ['c'], removed: ['old'], changed: ['a'], plan: machine })
  await up.said(/"server":"c".*server is ready/)
  expect(await cli.here('call', 'a__env', 'name=WORD')).toMatchObject({ code: 0, stdout: 'x\n' })
  expect(starts(cli, 'b.log')).toBe(1)
  expect((await cli.here('tools')).stdout).not.toMatch(/old__echo|b__fail/)
})

test('T-17 plan ends with 6 where servers offer what the new lock file does not hold, and names it', async () => {
  await using cli = await commandLine()
  const locked = (more = ''): string => file(`  a: ${entry(cli, 'a.log')}\n`, `lock: { file: ./trunkline.lock${more} }\n`)
  await cli.write('trunkline.yaml', locked())
  await cli.here('lock')
  const up = await cli.up()
  await up.said(/server is ready/)
  await cli.write('trunkline.yaml', locked(', on_change: quarantine, covers: [tools]').replace('"good"', '"fickle"'))
  await cli.here('reload')
  await up.said(/the definition of a tool changed/)
  const { code, stdout, errors } = await cli.here('plan')
  expect(code).toBe(6)
  expect(stdout).toMatch(/^ {2}! {2}tool {2}a__echo {2}description changed {2}lock mismatch, see trunkline diff a__echo$/m)
  expect(errors.at(-1)).toMatch(/^1 definition is not as locked/)
})

test('plan of files that are wrong ends with 2 and their places; without a running process with 4', async () => {
  await using cli = await commandLine()
  await cli.write('trunkline.yaml', file(`  a: ${entry(cli, 'a.log')}\n`))
  expect(await cli.here('plan')).toMatchObject({ code: 4 })
  await cli.up()
  await cli.write('trunkline.yaml', file(`  a: ${entry(cli, 'a.log')}\n`, 'nameing: {}\n'))
  expect(await cli.here('plan')).toMatchObject({ code: 2, stderr: expect.stringContaining('trunkline.yaml:2:1') })
})

test('naming.collision: error refuses files under which two entries want one name', async () => {
  await using cli = await commandLine()
  const named = (collision: string): string =>
    file(`  a: ${entry(cli, 'a.log')}\n  b: ${entry(cli, 'b.log')}\n`, `naming: { prefix: ${collision} }\n`)
  await cli.write('trunkline.yaml', named('always, collision: error'))
  const up = await cli.up()
  for (const key of ['a', 'b']) await up.said(new RegExp(`"server":"${key}".*server is ready`))
  await cli.write('trunkline.yaml', named('never, collision: error'))
  const told = /trunkline\.yaml naming\.collision: tools: "echo" belongs to a, which is configured first/
  for (const command of ['plan', 'reload'])
    expect(await cli.here(command)).toMatchObject({ code: 2, stderr: expect.stringMatching(told) })
  expect((await cli.here('tools')).stdout).toContain('a__echo')
  await cli.write('trunkline.yaml', named('never, collision: warn'))
  expect((await cli.here('plan')).stdout).toMatch(/^ {2}! tools: "echo" belongs to a/m)
  expect(await cli.here('reload')).toMatchObject({ code: 0 })
  await cli.write('trunkline.yaml', named('never, collision: error'))
  expect(await cli.here('reload')).toMatchObject({ code: 0 })
})

test('plan shows what toolsets cost before and after, their budgets, and whether these hold', async () => {
  await using cli = await commandLine()
  const withToolsets = (toolsets: string): string => file(`  a: ${entry(cli, 'a.log')}\n`, `toolsets:\n${toolsets}`)
  await cli.write(
    'trunkline.yaml',
    withToolsets('  review: { tools: ["a__e*"], budget: { tools: 2 } }\n  same: { tools: [a__add] }\n  old: {}\n'),
  )
  const up = await cli.up()
  await up.said(/server is ready/)
  await cli.write(
    'trunkline.yaml',
    withToolsets(
      '  review: { tools: ["a__e*", a__add], budget: { tools: 2 } }\n  same: { tools: [a__add] }\n  new: { tools: [a__add], discovery: search }\n',
    ),
  )
  const { code, stdout } = await cli.here('plan')
  expect(code).toBe(0)
  expect(stdout).toMatch(/^ {2}~ toolset review: 2 → 3 tools, \d+ → \d+ tok \(over its budget of 2 tools\)$/m)
  expect(stdout).toMatch(/^ {2}\+ toolset new: 1 tool, \d+ tok \(searched\)$/m)
  expect(stdout).toMatch(/^ {2}- toolset old {2}gone$/m)
  expect(stdout).not.toContain('toolset same')
  expect(JSON.parse((await cli.here('plan', '--json')).stdout)).toMatchObject({
    toolsets: [
      { name: 'review', before: { tools: 2, isOver: false }, after: { tools: 3, isOver: true } },
      { name: 'new' },
      { name: 'old' },
    ],
  })
})
