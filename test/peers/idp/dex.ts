/**
 * Dex with the configuration of docs/identity/dex.md. It is a Go module without usable version tags: `dex-module` pins a commit, and
 * Go builds it, once for all clones.
 */
import { spawn } from 'node:child_process'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseDocument } from 'yaml'
import { freePort } from '../../support/free-port.ts'
import { HERE, madeFrom, makeOnce, run } from '../languages.ts'
import { answering, PEOPLE, stop } from './provider.ts'
import type { Provider, ProviderKind } from './provider.ts'
import { blockOf } from './recipe.ts'

const START_MS = 60_000
/** bcrypt of `password`. */
const HASH = '$2a$10$2b2cU8CPhOTaGrs1HRQuAueS7JTT5ZHsHSzYiFPm1leZck7Mc8T4W'

const folder = (): string => madeFrom('dex', 'idp/dex-module/go.mod', 'idp/dex-module/go.sum')

const setUp = (): Promise<void> =>
  makeOnce(folder(), async () => {
    // Its one part in C is a database, which is not used here.
    const env = { ...process.env, GOFLAGS: '', CGO_ENABLED: '0' }
    const args = ['build', '-o', join(folder(), 'dex'), 'github.com/dexidp/dex/cmd/dex']
    await run('go', args, { cwd: join(HERE, 'idp/dex-module'), env })
  })

/** The file of the recipe, with what a test has in place of a database, TLS and a provider behind Dex. */
const start = async (gatewayOrigin: string): Promise<Provider> => {
  const port = await freePort()
  const origin = `http://127.0.0.1:${port}`
  const text = (await blockOf('dex', 'text'))
    .replaceAll('https://mcp.example.com', gatewayOrigin)
    .replaceAll('https://dex.example.com', origin)
  const { connectors: _, ...recipe } = parseDocument(text).toJS() as Record<string, unknown>
  const config = {
    ...recipe,
    storage: { type: 'memory' },
    web: { http: `127.0.0.1:${port}` },
    enablePasswordDB: true,
    staticPasswords: PEOPLE.map((username) => ({
      username,
      userID: `id-of-${username}`,
      email: `${username}@example.com`,
      hash: HASH,
    })),
  }
  const home = await mkdtemp(join(tmpdir(), 'trunkline-dex-'))
  const file = join(home, 'dex.json')
  await writeFile(file, JSON.stringify(config))
  const child = spawn(join(folder(), 'dex'), ['serve', file], { detached: true, stdio: ['ignore', 'pipe', 'pipe'] })
  const close = async (): Promise<void> => {
    stop(child)
    await rm(home, { recursive: true, force: true })
  }
  try {
    await answering(`${origin}/.well-known/openid-configuration`, child, START_MS)
  } catch (error) {
    await close()
    throw error
  }
  return { origin, [Symbol.asyncDispose]: close }
}

export const DEX: ProviderKind = {
  name: 'dex',
  staysUnasked: false,
  setUp,
  start,
  login: async (page, person) => {
    await page.locator('#login').fill(`${person}@example.com`)
    await page.locator('#password').fill('password')
    await page.locator('#submit-login').click()
    await page.getByRole('button', { name: 'Grant Access' }).click()
  },
}
