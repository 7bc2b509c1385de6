/** Every option is read by the code that it is meant for: one that only `config/` knows has no effect (B293). */
import { readdirSync, readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { isDeepStrictEqual } from 'node:util'
import { expect, test } from 'vitest'
import type { Configuration } from '../../../src/config/options.ts'
import { cacheSchema, listenLimitsSchema } from '../../../src/config/schema/file-schema.ts'
import { serverLimitsSchema, timeoutsSchema } from '../../../src/config/schema/server-schema.ts'
import { DEFAULT_LIMITS, DEFAULT_TIMEOUTS } from '../../../src/downstream/options.ts'
import { DEFAULT_GATEWAY } from '../../../src/gateway/options.ts'
import { DEFAULT_HOST } from '../../../src/host/options.ts'
import { yaml } from './workspace.ts'

const SRC = fileURLToPath(new URL('../../../src', import.meta.url))
/** Without comments, imports and texts, where a name may stand by chance. */
const codeOf = (name: string): string =>
  readFileSync(`${SRC}/${name}`, 'utf8')
    .replaceAll(/\/\*[^]*?\*\/|^\s*\/\/.*$|^import [^;]*? from '[^']*'$/gm, '')
    .replaceAll(/'(?:[^'\\\n]|\\.)*'/g, "''")
const files = readdirSync(SRC, { recursive: true, encoding: 'utf8' }).filter((name) => name.endsWith('.ts'))
/** The shapes of what `config/` builds; `ServerOptions` has a part from the catalog. */
const shapes = files.filter((name) => /(^|-|\/)options\.ts$|^catalog\/catalog\.ts$/.test(name))

/** Options whose effect is in the file of their shape, or in loading itself. */
const READ_THERE: Readonly<Record<string, string>> = {
  allowUnauthenticatedNetwork: 'config/build/hosts/settings.ts refuses an open address without it',
  advertise: 'advertisedScopes() in auth/inbound/verify/inbound-options.ts',
  perUser: 'isPersonal() in auth/credential-options.ts',
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

/** What a schema names the member of the options for: `max_body: limits.size('maxBodyBytes', …)`; the next test sets them. */
const named = new Set(
  files
    .filter((name) => name.endsWith('-schema.ts'))
    .flatMap((name) => [
      ...readFileSync(`${SRC}/${name}`, 'utf8').matchAll(/^\s*(\w+): \w+\.(?:of|size|count|duration)\(\s*'\w+'/gm),
    ])
    .map(([, name]) => name!),
)

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
  expect(own.filter((name) => !says(reading, name) && !named.has(name))).toEqual([])
  expect(own.filter((name) => !says(tests, name))).toEqual([])
})

/** Another value than the default, in the same form. */
const another = (initial: unknown): string => {
  if (typeof initial === 'number') return initial === 12 ? '13' : '12'
  if (String(initial).endsWith('B')) return '97KiB'
  return String(initial).endsWith('/s') || initial === undefined ? '97/s' : '97ms'
}

test.each([
  ['listen: { limits: { # } }', listenLimitsSchema, ({ host }: Configuration) => host.limits, DEFAULT_HOST.limits],
  ['cache: { # }', cacheSchema, ({ gateway }: Configuration) => gateway, DEFAULT_GATEWAY],
  [
    'servers: { a: { command: x, limits: { # } } }',
    serverLimitsSchema,
    ({ servers }: Configuration) => servers[0]!.limits,
    DEFAULT_LIMITS,
  ],
  [
    'servers: { a: { command: x, timeouts: { # } } }',
    timeoutsSchema,
    ({ servers }: Configuration) => servers[0]!.timeouts,
    DEFAULT_TIMEOUTS,
  ],
] as const)('B293 every field of %s sets the member that it names, and no other', async (text, { shape }, built, defaults) => {
  for (const [name, field] of Object.entries(shape)) {
    const { initial, member } = field.meta() as { initial?: unknown; member: string }
    await using files = await yaml(`${text.replace('#', `${name}: ${another(initial)}`)}\n`)
    const options = Object.entries(built(await files.load()))
    const changed = options.filter(([key, value]) => !isDeepStrictEqual(value, new Map(Object.entries(defaults)).get(key)))
    // The limit for this machine follows that for one address.
    expect(changed.map(([key]) => key).filter((key) => key !== 'maxConnectionsPerLoopback')).toEqual([member])
  }
})
