/**
 * Keycloak with the realm file of docs/identity. It comes from Maven Central by `mvn`, once for all clones, and needs Java 17 and some
 * minutes of a slow machine.
 */
import { spawn } from 'node:child_process'
import { cp, mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { homedir, tmpdir } from 'node:os'
import { join } from 'node:path'
import { freePort } from '../../support/free-port.ts'
import { madeFrom, makeOnce, run } from '../languages.ts'
import { answering, stop } from './provider.ts'
import type { Person, Provider, ProviderKind } from './provider.ts'

const VERSION = '26.4.0'
const ARTIFACT = `org.keycloak:keycloak-quarkus-dist:${VERSION}:tar.gz`
const REALM = new URL('../../../docs/identity/trunkline-realm.json', import.meta.url)
const START_MS = 600_000
const PASSWORD = 'a-password-of-a-test'
/** Group and realm role, which the rules of the recipe name. */
const USERS: readonly (readonly [Person, groups: readonly string[], roles: readonly string[]])[] = [
  ['alice', ['/dev'], ['user']],
  ['bob', ['/sre'], []],
  ['carol', ['/dev'], []],
]

const folder = (): string => madeFrom(`keycloak-${VERSION}`)

const setUp = (): Promise<void> =>
  makeOnce(folder(), async () => {
    await run('java', ['-version'])
    const get = 'org.apache.maven.plugins:maven-dependency-plugin:3.6.1:get'
    await run('mvn', ['-q', '-B', get, `-Dartifact=${ARTIFACT}`, '-Dtransitive=false'])
    const archive = join(
      homedir(),
      `.m2/repository/org/keycloak/keycloak-quarkus-dist/${VERSION}/keycloak-quarkus-dist-${VERSION}.tar.gz`,
    )
    await run('tar', ['xzf', archive, '-C', folder(), '--strip-components=1'])
  })

const start = async (gatewayOrigin: string): Promise<Provider> => {
  const port = await freePort()
  const home = await mkdtemp(join(tmpdir(), 'trunkline-keycloak-'))
  await cp(folder(), home, { recursive: true })
  await mkdir(join(home, 'data/import'), { recursive: true })
  const text = (await readFile(REALM, 'utf8')).replaceAll('https://mcp.example.com', gatewayOrigin)
  const users = USERS.map(([username, groups, realmRoles]) => ({
    username,
    enabled: true,
    email: `${username}@example.com`,
    firstName: username,
    lastName: 'Test',
    groups,
    realmRoles: ['default-roles-trunkline', ...realmRoles],
    credentials: [{ type: 'password', value: PASSWORD }],
  }))
  const realm = { ...(JSON.parse(text) as Record<string, unknown>), users }
  await writeFile(join(home, 'data/import/trunkline-realm.json'), JSON.stringify(realm))
  const origin = `http://127.0.0.1:${port}`
  const at = ['--http-host', '127.0.0.1', '--http-port', String(port), '--hostname', origin]
  const child = spawn(join(home, 'bin/kc.sh'), ['start-dev', '--import-realm', ...at, '--cache', 'local'], {
    env: { ...process.env, JAVA_OPTS_APPEND: '-Xmx512m -XX:TieredStopAtLevel=1' },
    detached: true,
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  const close = async (): Promise<void> => {
    stop(child)
    await rm(home, { recursive: true, force: true })
  }
  try {
    await answering(`${origin}/realms/trunkline/.well-known/openid-configuration`, child, START_MS)
  } catch (error) {
    await close()
    throw error
  }
  return { origin, [Symbol.asyncDispose]: close }
}

export const KEYCLOAK: ProviderKind = {
  name: 'keycloak',
  staysUnasked: true,
  setUp,
  start,
  login: async (page, person) => {
    await page.locator('#username').fill(person)
    await page.locator('#password').fill(PASSWORD)
    await page.locator('#kc-login').click()
  },
}
