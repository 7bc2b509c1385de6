/** `trunkline why` and `check --host`: what becomes of an entry on its way to hosts, and whether they would take it. */
import { describe, expect, test } from 'vitest'
import { commandLine } from '../../support/cli.ts'

const squeezed = (text: string): string[] =>
  text
    .trimEnd()
    .split('\n')
    .map((line) => line.trim().replaceAll(/ {2,}/g, ' | '))

describe('why', () => {
  test('prints the chain of rules with their places, of what is shown and of what is hidden', async () => {
    await using cli = await commandLine()
    await cli.write(
      'trunkline.yaml',
      `servers:
  alpha:
    command: ${JSON.stringify(process.execPath)}
    args: ${/args: (\[.*\])/.exec(cli.fake())?.[1]}
    prefix: al
    filter:
      deny: ["fail*"]
    tools:
      add:
        name: sum
        description: Adds numbers.
        args:
          a: { value: 1, hide: true }
`,
    )
    await cli.up().then((up) => up.said(/server is ready/))
    const shown = await cli.here('why', 'al__sum')
    expect(shown.code).toBe(0)
    expect(squeezed(shown.stdout)).toEqual([
      'tools al__sum: shown to hosts',
      'offers | server alpha offers it as "add" | trunkline.yaml:2:3 servers.alpha',
      'renames | it is called "sum" | trunkline.yaml:10:9 servers.alpha.tools.add.name',
      'edits | another description | trunkline.yaml:11:9 servers.alpha.tools.add.description',
      'edits | the argument "a" is pinned, is hidden | trunkline.yaml:13:11 servers.alpha.tools.add.args.a',
      expect.stringMatching(/^renames \| hosts call it "al__sum" \| trunkline\.yaml:\d+:\d+ servers\.alpha\.prefix$/),
    ])
    for (const name of ['add', 'al__add']) expect((await cli.here('why', name)).stdout).toBe(shown.stdout)
    expect(squeezed((await cli.here('why', 'fail')).stdout)).toEqual([
      'tools alpha fail: hidden from hosts',
      'offers | server alpha offers it as "fail" | trunkline.yaml:2:3 servers.alpha',
      'hides | denies "fail*" | trunkline.yaml:7:14 servers.alpha.filter.deny[0]',
    ])
    expect(JSON.parse((await cli.here('why', 'fail', '--json')).stdout)).toMatchObject([
      {
        kind: 'tools',
        server: 'alpha',
        original: 'fail',
        steps: [{ effect: 'offers' }, { effect: 'hides', place: 'trunkline.yaml:7:14' }],
      },
    ])
    expect(await cli.here('why', 'al_sum')).toMatchObject({
      code: 1,
      stderr: 'nothing is called "al_sum"; did you mean al__sum?\n',
    })
    expect(await cli.here('why', 'zzzzzz')).toMatchObject({ code: 1, stderr: expect.stringContaining('trunkline tools') })
  })

  test('--as HOST: the name that this host gives a tool, and what it would not take', async () => {
    await using cli = await commandLine()
    const long = 'server-of-forty-chars'.slice(0, 20)
    await cli.write('trunkline.yaml', `naming: { max_length: 64 }\nservers:\n  ${long}: ${cli.fake('long-names')}\n`)
    await cli.up().then((up) => up.said(/server is ready/))
    const name = JSON.parse((await cli.here('tools', '--json')).stdout).map((row: { name: string }) => row.name) as string[]
    const longest = name.toSorted((a, b) => b.length - a.length)[0] ?? ''
    const cursor = squeezed((await cli.here('why', longest, '--as', 'cursor')).stdout)
    expect(cursor).toContain(`renames | Cursor calls it "trunkline${longest}"`)
    expect(cursor.at(-1)).toMatch(/^hides \| Cursor: a name of \d+ characters with "trunkline" > 59: the tool is filtered out → /)
    expect(squeezed((await cli.here('why', `${long}__echo`, '--as', 'zed')).stdout).at(-1)).toBe(
      'shows | Zed accepts it unchanged',
    )
    const listed = await cli.here('tools', '--as', 'cursor')
    expect(squeezed(listed.stdout).find((line) => line.includes(longest))).toContain('the tool is filtered out')
    expect(listed.stdout).toContain(`trunkline${long}__echo `)
    expect(JSON.parse((await cli.here('tools', 'echo', '--as', 'cursor', '--json')).stdout)).toMatchObject([
      { name: `${long}__echo`, as: { name: `trunkline${long}__echo`, findings: [] } },
    ])
    for (const words of [['tools'], ['why', longest]])
      expect(await cli.here(...words, '--as', 'cursr')).toMatchObject({
        code: 1,
        stderr: 'no host "cursr" is known; did you mean "cursor"?\n',
      })
  })

  test('T-17 says that a lock keeps something back', async () => {
    await using cli = await commandLine()
    await cli.write('trunkline.yaml', `lock: { file: a.lock, on_change: quarantine }\nservers:\n  a: ${cli.fake()}\n`)
    await cli.here('lock')
    await cli.write('trunkline.yaml', `lock: { file: a.lock, on_change: quarantine }\nservers:\n  a: ${cli.fake('fickle')}\n`)
    const { stdout } = await cli.here('why', 'a__echo')
    expect(squeezed(stdout)).toEqual([
      'tools a echo: hidden from hosts',
      'offers | server a offers it as "echo" | trunkline.yaml:3:3 servers.a',
      'hides | its definition is not the one in a.lock (lock.on_change: quarantine); approve it to serve it',
    ])
  })
})

describe('why, with toolsets', () => {
  test('says of each whether it holds the tool and what it makes of it; --toolset asks one', async () => {
    await using cli = await commandLine()
    await cli.write(
      'trunkline.yaml',
      `toolsets:
  review: { tools: ["a__e*"], override: { a__echo: { title: Say } }, confirm: [a__echo] }
  reading: { where: { readOnlyHint: true } }
  other: { tools: [a__add] }
servers:
  a: ${cli.fake()}
`,
    )
    const all = squeezed((await cli.here('why', 'a__echo')).stdout)
    expect(all.slice(3)).toEqual([
      'shows | toolset review contains it | trunkline.yaml:2:3 toolsets.review',
      'edits | toolset review overrides its texts or annotations | trunkline.yaml:2:3 toolsets.review',
      'edits | toolset review asks a person before each call | trunkline.yaml:2:3 toolsets.review',
      'hides | toolset reading does not contain it: its annotations do not match "where" | trunkline.yaml:3:3 toolsets.reading',
      'hides | toolset other does not contain it: no selection matches | trunkline.yaml:4:3 toolsets.other',
    ])
    const one = JSON.parse((await cli.here('why', 'a__echo', '--toolset', 'review', '--json')).stdout) as object[]
    expect(one).toMatchObject([{ exposed: 'a__echo', toolsets: ['review'] }])
    expect(await cli.here('why', 'a__echo', '--toolset', 'revew')).toMatchObject({
      code: 2,
      stderr: 'no toolset "revew" is configured; did you mean review?\n',
    })
  })
})

describe('check --host', () => {
  test('looks at what is stored without starting a server, and says what would not work and what to do', async () => {
    await using cli = await commandLine()
    const file = (more: string): string => `${more}servers:\n  a: ${cli.fake('good', 'log')}\n`
    const long = 'x'.repeat(70)
    await cli.write('trunkline.yaml', file(''))
    const before = await cli.here('check', '--host', 'cursor')
    expect(before).toMatchObject({ code: 0, stdout: expect.stringContaining('a: its lists are not known yet; use --live') })
    expect((await cli.here('check', '--host', 'cursor,zed', '--live')).stdout).toBe('6 tools: ok in Cursor, Zed\n')
    const starts = cli.log('log').length
    await cli.write(
      'trunkline.yaml',
      `naming: { max_length: 128 }\nservers:\n  a: ${cli.fake('good', 'log').replace(' }', `, alias: { add: ${long} } }`)}\n`,
    )
    const { code, stdout, errors } = await cli.here('check', '--host', 'claude-desktop,claude-code,zed')
    expect(code).toBe(6)
    expect(squeezed(stdout)).toEqual([
      `claude-desktop | ${long} | a name of 70 characters > 64: one such name and no tool of the server is shown | → set naming.max_length: 64, or rename it under servers.a.tools`,
      `zed | ${long} | a name of 70 characters > 64: the end of the name is cut | → set naming.max_length: 64, or rename it under servers.a.tools`,
      '6 tools: ok in Claude Code',
    ])
    expect(errors.at(-1)).toBe('1 thing would not work in Claude Desktop')
    expect(cli.log('log')).toHaveLength(starts)
    const told = JSON.parse((await cli.here('check', '--host', 'all', '--json')).stdout) as { findings: { from: string }[] }
    expect(told).toMatchObject({ ok: false, tools: 6, unknown: [] })
    expect(told.findings.every(({ from }) => from !== '')).toBe(true)
  })

  test('a host that is not known is told with the nearest one', async () => {
    await using cli = await commandLine()
    await cli.write('trunkline.yaml', `servers:\n  a: ${cli.fake()}\n`)
    expect(await cli.here('check', '--host', 'cursr')).toMatchObject({
      code: 1,
      stderr: 'no host "cursr" is known; did you mean "cursor"?\n',
    })
  })
})
