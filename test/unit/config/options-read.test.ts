/** Every option is read by the code that it is meant for: one that only `config/` knows has no effect (B293). */
import { readdirSync, readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { expect, test } from 'vitest'

const SRC = fileURLToPath(new URL('../../../src', import.meta.url))
/** Without comments, imports and texts, where a name may stand by chance. */
const codeOf = (name: string): string =>
  readFileSync(`${SRC}/${name}`, 'utf8')
    .replaceAll(/\/\*[^]*?\*\/|^\s*\/\/.*$|^import [^;]*? from '[^']*'$/gm, '')
    .replaceAll(/'(?:[^'\\\n]|\\.)*'/g, "''")
const files = readdirSync(SRC, { recursive: true, encoding: 'utf8' }).filter((name) => name.endsWith('.ts'))
/** The shapes of what `config/` builds. */
const shapes = files.filter((name) => /(^|-|\/)options\.ts$/.test(name))

/** Options whose effect is in the file of their shape, or in loading itself. */
const READ_THERE: Readonly<Record<string, string>> = {
  allowUnauthenticatedNetwork: 'config/build/hosts/settings.ts refuses an open address without it',
  advertise: 'advertisedScopes() in auth/inbound/inbound-options.ts',
  perUser: 'isPersonal() in auth/oauth/credential-options.ts',
}

test('B293 every option that a configuration can set is read outside of src/config', () => {
  const names = shapes.flatMap((file) =>
    [...codeOf(file).matchAll(/^ {2}readonly (\w+)\??:/gm)].map(([, name]) => ({ file, name })),
  )
  expect(names.length).toBeGreaterThan(100)
  const code = files.filter((name) => !name.startsWith('config/') && !shapes.includes(name)).map(codeOf)
  const unread = names.filter(
    ({ name }) => READ_THERE[name!] === undefined && !code.some((text) => new RegExp(`\\b${name}\\b`).test(text)),
  )
  expect(unread).toEqual([])
})

interface Schema {
  readonly properties?: Readonly<Record<string, Schema>>
  readonly [keyword: string]: unknown
}
/** Names of all members that the schema of the file knows, wherever they stand. */
const membersOf = (schema: unknown, found = new Set<string>()): Set<string> => {
  if (typeof schema !== 'object' || schema === null) return found
  for (const [keyword, value] of Object.entries(schema as Schema)) {
    if (keyword === 'properties') for (const name of Object.keys(value as object)) found.add(name)
    if (keyword !== 'enum' && keyword !== 'default' && keyword !== 'examples') membersOf(value, found)
  }
  return found
}
const ROOT = `${SRC}/..`
const members = membersOf(JSON.parse(readFileSync(`${ROOT}/schema/v1.json`, 'utf8')))
const camel = (name: string): string => name.replaceAll(/[_-]([a-z])/g, (_, letter: string) => letter.toUpperCase())
const says = (text: string, name: string): boolean =>
  [name, camel(name)].some((word) =>
    new RegExp(String.raw`(?<![\w$])${word.replaceAll('$', String.raw`\$`)}(?![\w$])`).test(text),
  )
/** Of editors, not of ours. */
const FOREIGN = new Set(['$schema'])

test('B293 every member of the schema is read by src/config, and a test names it', () => {
  const reading = files
    .filter((name) => !name.endsWith('-schema.ts'))
    .map(codeOf)
    .join('\n')
  const tests = readdirSync(`${ROOT}/test`, { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith('.ts'))
    .map((name) => readFileSync(`${ROOT}/test/${name}`, 'utf8'))
    .join('\n')
  const own = [...members].filter((name) => !FOREIGN.has(name))
  expect(own.length).toBeGreaterThan(100)
  expect(own.filter((name) => !says(reading, name))).toEqual([])
  expect(own.filter((name) => !says(tests, name))).toEqual([])
})
