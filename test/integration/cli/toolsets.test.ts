/** Toolsets from the command line: chosen by name, told by `check --live` and the log, changed by a reload. */
import { createInterface } from 'node:readline'
import { describe, expect, test } from 'vitest'
import { commandLine, INITIALIZE, message } from '../../support/cli.ts'
import type { Cli } from '../../support/cli.ts'

const TOOLSETS = `
toolsets:
  loud: { tools: [a__echo] }
  asking: { tools: [a__fail], confirm: ["a__*"] }
`
const configure = (cli: Cli, toolsets = TOOLSETS): Promise<void> =>
  cli.write('trunkline.yaml', `servers:\n  a: ${cli.fake('good', 'log')}\n${toolsets}`)
const namesIn = (json: string): string[] => (JSON.parse(json) as { name: string }[]).map(({ name }) => name)
const C = ['-c', 'trunkline.yaml']

/** What a host on the pipe of this command is listed. */
const toolsOn = async (cli: Cli, args: readonly string[]): Promise<string[]> => {
  await using serving = cli.spawn(['stdio', ...C, ...args])
  const lines = createInterface({ input: serving.child.stdout! })[Symbol.asyncIterator]()
  serving.child.stdin!.write(INITIALIZE)
  await lines.next()
  serving.child.stdin!.write(message(undefined, 'notifications/initialized') + message(1, 'tools/list'))
  for (;;) {
    const { result } = JSON.parse((await lines.next()).value as string) as { result?: { tools?: { name: string }[] } }
    if (result?.tools === undefined) continue
    serving.child.stdin!.end()
    expect(await serving.ended).toBe(0)
    return result.tools.map(({ name }) => name)
  }
}

describe('--toolset', () => {
  test('chooses for tools, call and stdio, by itself and attached alike; an unknown one ends with 2', async () => {
    await using cli = await commandLine()
    await configure(cli)
    const check = async (): Promise<void> => {
      const [tools, listed, ...ends] = await Promise.all([
        cli.here('tools', '--toolset', 'loud', '--json'),
        toolsOn(cli, ['--toolset', 'loud']),
        cli.here('tools', '--toolset', 'quiet'),
        cli.run(['stdio', ...C, '--toolset', 'quiet']),
      ])
      expect([namesIn(tools.stdout), listed]).toEqual([['a__echo'], ['a__echo']])
      for (const { code, stdout, errors } of ends)
        expect([code, stdout, errors.at(-1)]).toEqual([2, '', expect.stringMatching(/^no toolset "quiet" is configured/)])
    }
    await check()
    await using _up = await cli.up('--listen', '127.0.0.1:0')
    await check()
    expect(await cli.here('call', 'a__echo', 'text=hi', '--toolset', 'asking')).toMatchObject({ code: 1 })
    expect(await cli.here('call', 'a__echo', '--toolset', 'quiet')).toMatchObject({ code: 2, stdout: '' })
    const { code, errors } = await cli.here('call', 'a__fail', '--toolset', 'asking')
    expect([code, errors.at(-1)]).toEqual([1, expect.stringContaining('(toolsets.asking.confirm), and this host cannot ask')])
  })
})

test('what matches nothing is told by check --live, ps and the log, with its place, and a reload is seen at once', async () => {
  await using cli = await commandLine()
  await configure(cli, 'toolsets:\n  loud: { tools: ["a__ecko*"], budget: { tools: 1 } }\n  default: { budget: { tools: 1 } }\n')
  const odd = 'trunkline.yaml:4:3: toolset "loud" says tools: a__ecko*, and no tool matches; see trunkline tools for the names'
  const over = /trunkline\.yaml:5:3: toolset "default" has \d+ tools, about \d+ tokens, and a budget of 1 tool; choose fewer/
  await using up = await cli.up('--listen', '127.0.0.1:0')
  await up.said(/toolset .{1,2}loud.{1,2} says/)
  const { stdout } = await cli.here('ps')
  expect(stdout).toContain(odd)
  expect(stdout).toMatch(over)
  expect(stdout).toMatch(/^ {2}toolset loud +0 tools$/m)
  await configure(cli, 'toolsets:\n  default: { tools: [a__echo] }\n')
  await cli.here('reload')
  expect(namesIn((await cli.here('tools', '--json')).stdout)).toEqual(['a__echo'])
})
