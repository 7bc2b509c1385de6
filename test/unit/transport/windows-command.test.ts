/** How a command is started on Windows, whose file names have no case, and where most commands of npm are batch files (T-12). */
import { expect, test } from 'vitest'
import { windowsCommand } from '../../../src/transport/process/windows-command.ts'

const NODE = String.raw`C:\Program Files\nodejs`
const FILES = new Set(
  [
    String.raw`${NODE}\npx`,
    String.raw`${NODE}\npx.cmd`,
    String.raw`${NODE}\node.exe`,
    String.raw`C:\tools\uvx.exe`,
    String.raw`C:\tools\uvx.cmd`,
    String.raw`C:\work\bin\serve.bat`,
  ].map((file) => file.toLowerCase()),
)
const ENV = {
  Path: String.raw`C:\tools;${NODE};`,
  PATHEXT: '.COM;.EXE;.BAT;.CMD;.JS',
  COMSPEC: String.raw`C:\Windows\system32\cmd.exe`,
}
const started = (command: string, args: readonly string[] = [], env: Readonly<Record<string, string>> = ENV) =>
  windowsCommand({ command, args, env, cwd: String.raw`C:\work` }, async (path) => FILES.has(path.toLowerCase()))

/** What `cmd.exe` makes of a line: a caret makes the next character plain; others inside of quotes stay as they are. */
const interpreted = (line: string): string => {
  let text = ''
  let isQuoted = false
  for (let at = 0; at < line.length; at++) {
    const character = line[at]!
    if (character === '^' && !isQuoted) text += line[++at] ?? ''
    else {
      if (character === '"') isQuoted = !isQuoted
      if ('&|<>()%!'.includes(character) && !isQuoted) throw new Error(`${character} is interpreted in ${line}`)
      text += character
    }
  }
  return text
}
/** The arguments of a program, as the C library of Windows reads them. */
const argumentsIn = (line: string): string[] => {
  const found: string[] = []
  for (const [, inside = ''] of line.matchAll(/"((?:\\.|[^"\\])*)"/g))
    found.push(
      inside.replaceAll(/(\\+)("|$)/g, (_, slashes: string, quote: string) => slashes.slice(0, slashes.length >> 1) + quote),
    )
  return found
}

test.each([
  ['node', 'node'],
  ['uvx', 'uvx'],
  [String.raw`C:\tools\uvx.exe`, String.raw`C:\tools\uvx.exe`],
  ['missing', 'missing'],
])('a program is started as it is: %s', async (command, file) => {
  expect(await started(command, ['a b'])).toEqual({ file, args: ['a b'], isVerbatim: false })
})

test.each(['npx', 'npx.cmd', String.raw`bin\serve`, './bin/serve.bat'])(
  'T-12 a batch file is run by cmd.exe: %s',
  async (command) => {
    const { file, args, isVerbatim } = await started(command)
    expect([file, isVerbatim, args.slice(0, 3)]).toEqual([ENV.COMSPEC, true, ['/d', '/s', '/c']])
    expect(interpreted(args[3]!.slice(1, -1))).toMatch(/^C:\\(?:Program Files\\nodejs\\npx\.cmd|work\\bin\\serve\.bat)$/i)
  },
)

test('without PATHEXT and ComSpec those of Windows are taken', async () => {
  expect(await started('npx', [], { PATH: NODE })).toMatchObject({ file: 'cmd.exe', isVerbatim: true })
})

test('T-12 no argument of a batch file becomes a command, and each arrives as it is', async () => {
  const args = [
    '-y',
    '@scope/server@1.2',
    '',
    'a b',
    '&calc',
    '"&calc&"',
    '%PATH%',
    '^',
    'a\\',
    'a\\\\"b',
    '(x)|y>z<',
    '!v!',
    'C:\\d e\\',
  ]
  const line = (await started('npx', args)).args[3]!.slice(1, -1)
  // The batch file passes on what `cmd.exe` has made of its line, and that is interpreted again.
  const passedOn = interpreted(line).slice(String.raw`${NODE}\npx.cmd `.length)
  expect(argumentsIn(interpreted(passedOn))).toEqual(args)
})

test('T-12 an argument with a line end is refused, since cmd.exe would end the command there', async () => {
  await expect(started('npx', ['a\nb'])).rejects.toMatchObject({ kind: 'spawn_failed', executed: 'no' })
  expect(await started('node', ['a\nb'])).toMatchObject({ isVerbatim: false })
})
