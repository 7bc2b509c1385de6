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
  allowUnauthenticatedNetwork: 'config/settings.ts refuses an open address without it',
  advertise: 'advertisedScopes() in auth/inbound-options.ts',
  perUser: 'isPersonal() in auth/oauth/options.ts',
}

test('B293 every option that a configuration can set is read outside of src/config', () => {
  const names = shapes.flatMap((file) =>
    [...codeOf(file).matchAll(/^ {2}readonly (\w+)\??:/gm)].map(([, name]) => ({ file, name })),
  )
  expect(names.length).toBeGreaterThan(100)
  const code = files.filter((name) => !name.startsWith('config/') && !shapes.includes(name)).map(codeOf)
  const unread = names.filter(
    ({ name }) => READ_THERE[name] === undefined && !code.some((text) => new RegExp(`\\b${name}\\b`).test(text)),
  )
  expect(unread).toEqual([])
})
