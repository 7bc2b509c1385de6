/** What must hold for every line of the source: regular expressions end, secrets are compared in constant time (T-27, T-31). */
import { execFileSync } from 'node:child_process'
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect, test } from 'vitest'
import { leastMs } from '../support/cpu.ts'

const SRC = fileURLToPath(new URL('../../src', import.meta.url))
const files = readdirSync(SRC, { recursive: true, encoding: 'utf8' })
  .filter((name) => /\.tsx?$/.test(name))
  .map((name) => ({ name, text: readFileSync(`${SRC}/${name}`, 'utf8') }))

/** Literals, by the characters that may stand before one; comments are cut out first. */
const expressions = files.flatMap(({ name, text }) =>
  [
    ...text
      .replaceAll(/\/\*[^]*?\*\/|^\s*\/\/.*$/gm, '')
      .matchAll(/(?<=[=(,:!&|?[\s])\/((?![*/\s])(?:[^/\\[\n]|\\.|\[(?:[^\]\\\n]|\\.)*\])+)\/([dgimsuvy]*)(?=[.,)\s;\]])/g),
  ].map(([, source, flags]) => ({ name, source, flags })),
)
/** A quarter of both: who is quadratic shows in the smaller as well, at a sixteenth of the price. */
const BIG = 16 * 1024
const BUDGET_MS = 50 / 4
/** Who is cubic shows in so little. */
const SMALL = 512
/** What an expression may want before such a run: the name of a header or a parameter, a tag, a string. */
const BEGINNINGS = ['a:', 'a=', '<a', '"']
/** What makes a backtracking matcher go back: runs of one character of the expression's own, with an end that never matches. */
const attacks = (source: string): string[] => {
  const letters = [...new Set(`${source.replaceAll(/\\[pPu]\{?[^}]*\}?|\\./g, ' ')}a0 -/"\\{\n`)]
  const runs = (size: number): string[] => letters.flatMap((letter) => ['\u0000', ''].map((end) => letter.repeat(size) + end))
  return [...runs(BIG), ...BEGINNINGS.flatMap((beginning) => runs(SMALL).map((run) => beginning + run))]
}

test('T-27 every regular expression of the source reads its worst at 50 ms per 64 KiB', () => {
  expect(expressions.length).toBeGreaterThan(60)
  const slow = expressions.flatMap(({ name, source, flags }) => {
    const pattern = new RegExp(source!, flags!.replace(/[gy]/g, ''))
    const bad = attacks(source!).find((text) => leastMs(() => pattern.test(text), BUDGET_MS) > BUDGET_MS)
    return bad === undefined ? [] : [`${name}: /${source}/ on ${JSON.stringify(bad.slice(0, 4))}`]
  })
  expect(slow).toEqual([])
})
test('T-31 nothing that authenticates is compared with an operator; marks are compared by timingSafeEqual', () => {
  const auth = files.filter(({ name }) => name.startsWith('auth'))
  expect(auth.map(({ text }) => text).join('')).toContain('timingSafeEqual(')
  for (const { name, text } of files)
    expect(
      text.match(
        /\b(?:token|secret|mark|bearer|password|digest|hmac|signature)\w*\s*[!=]==?\s*(?!undefined|null|token\b)\w*(?:given|expected|token|secret|mark)\w*/gi,
      ) ?? [],
      name,
    ).toEqual([])
})

test('T-15 the commands write through one file: no other touches a standard stream, but to ask whether it is a terminal', () => {
  /** Where a stream is handed on whole: to the log, which escapes as well, to the protocol, and from the process. */
  const HANDED_ON: Readonly<Record<string, RegExp>> = {
    'main.ts': /process\.stderr\.write\(/g,
    'program.ts': /process\.std(?:in|out|err)/g,
    'index.ts': /createLog\([^\n]*process\.stderr/g,
    'commands/serve/up.ts': /output: io\.stdout/g,
    'commands/serve/stdio.ts':
      /output: io\.stdout|io\.stdout\.on\('error', leave\)|socket\.pipe\(io\.stdout, \{ end: false \}\)/g,
  }
  const ASKED =
    /painter\(io\.std(?:out|err),|isDrawn\(io\.std(?:out|err),|io\.std(?:out|err)\.columns|io\.std(?:out|err)\.isTTY|createLog\([^\n]*io\.stderr/g
  const others = files.filter(({ name }) => name !== 'commands/terminal/print.ts')
  const found = others.flatMap(({ name, text }) => {
    const code = text.replaceAll(/\/\*[^]*?\*\/|^\s*\/\/.*$/gm, '').replaceAll(HANDED_ON[name] ?? ASKED, '')
    const rest =
      code.replaceAll(ASKED, '').match(/\b(?:io|process)\.std(?:out|err)\b|\bconsole\.\w+|std(?:out|err)\.write\b/g) ?? []
    return rest.map((use) => `${name}: ${use}`)
  })
  expect(found).toEqual([])
  expect(files.filter(({ text }) => text.includes('printVerbatim(')).map(({ name }) => name)).toEqual([
    'commands/inspect/completion.ts',
    'commands/inspect/schema.ts',
  ])
})

test('no file of the repository names the folder of a checkout', () => {
  const root = fileURLToPath(new URL('../..', import.meta.url))
  const names = execFileSync('git', ['ls-files', '-z'], { cwd: root, encoding: 'utf8' }).split('\0').filter(Boolean)
  expect(names.length).toBeGreaterThan(500)
  const naming = names.filter((name) => existsSync(join(root, name)) && readFileSync(join(root, name)).includes(root))
  expect(naming).toEqual([])
})
