/**
 * The team story of `examples/team/`, as processes: who sees and can call what, as its page says, and everything that an attacker may
 * try at the door while it runs. All in one running Trunkline; its audit log and its own log are looked into at the end.
 */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { copyFile, mkdtempDisposable, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { startTrunkline, TRUNKLINE } from '../../examples/run.ts'
import { connectLegacy, connectModern } from '../../examples/team/hosts.ts'
import type { Answer, Host } from '../../examples/team/hosts.ts'
import { CONFIG } from '../../examples/team/team.ts'
import type { User } from '../support/authorization-server.ts'
import { Browser } from '../support/browser.ts'
import { bearer } from '../support/credentials.ts'
import { request } from '../support/fakes/messages.ts'
import type { JsonMap } from '../support/fakes/messages.ts'
import { send } from '../support/fakes/raw-http.ts'
import { ATTACKS, newcomer } from './team-attacks.ts'
import { modern, startScene } from './team-scene.ts'
import type { Scene } from './team-scene.ts'

const FOLDER = fileURLToPath(new URL('../../examples/team', import.meta.url))
const HOSTS = { 'SDK 1, 2025-11-25': connectLegacy, 'SDK 2, 2026-07-28': connectModern }
const FILES = fileURLToPath(new URL('../../examples/files', import.meta.url))
type Kind = keyof typeof HOSTS

let scene: Scene
beforeAll(async () => {
  scene = await startScene()
})
afterAll(() => scene[Symbol.asyncDispose]())

/** Each has signed in to the desk once, from a host of either era; what the host saw before and then. */
interface SignedIn {
  readonly before: readonly string[]
  readonly answer: Answer
  readonly after: readonly string[]
}
const arrivals = new Map<User, Promise<SignedIn>>()
const ARRIVES_BY: Record<User, Kind> = { alice: 'SDK 1, 2025-11-25', bob: 'SDK 2, 2026-07-28', carol: 'SDK 2, 2026-07-28' }
const signedIn = (user: User): Promise<SignedIn> => {
  const arrive = async (): Promise<SignedIn> => {
    await using host = await HOSTS[ARRIVES_BY[user]](scene.at('/mcp'), scene.people[user])
    const before = await host.listed()
    const answer = await host.call('desk__sign_in')
    return { before, answer, after: await host.listed() }
  }
  const arrival = arrivals.get(user) ?? arrive()
  arrivals.set(user, arrival)
  return arrival
}
const ofDesk = (tools: readonly string[]): string[] => tools.filter((tool) => tool.startsWith('desk__'))

test.each([
  ['alice', ['desk__who_am_i']],
  ['bob', ['desk__who_am_i', 'desk__book']],
] as const)('6.4 %s is sent by its host to sign in, and has the tools of the desk then', async (user, tools) => {
  const { before, answer, after } = await signedIn(user)
  expect(ofDesk(before)).toEqual(['desk__sign_in'])
  expect(answer).toMatchObject({ isError: false, asked: ['url'] })
  expect(ofDesk(after)).toEqual(tools)
})

test('B250 T-07 the desk answers each with its own name, also at one time, and sees no token of a host', async () => {
  const users = Object.keys(scene.people) as User[]
  await Promise.all(users.map(signedIn))
  const answers = users.flatMap((user) =>
    Object.values(HOSTS).map(async (connect) => {
      await using host = await connect(scene.at('/mcp'), scene.people[user])
      const said = await Promise.all(Array.from({ length: 20 }, () => host.call('desk__who_am_i')))
      return [user, new Set(said.map(({ text }) => text))]
    }),
  )
  expect(await Promise.all(answers)).toEqual(
    users.flatMap((user) => Object.keys(HOSTS).map(() => [user, new Set([`you are ${user}`])])),
  )
  const came = new Set(scene.team.desk.came)
  for (const { token } of Object.values(scene.people)) expect(came).not.toContain(`Bearer ${token}`)
})

/** What each tool takes; all of them can be called any number of times. `path` is below the folder that the file server serves. */
const ARGUMENTS: Readonly<Record<string, Readonly<Record<string, unknown>>>> = {
  files__list_directory: { path: FILES },
  files__list_directory_with_sizes: { path: FILES },
  files__read_text_file: { path: join(FILES, 'readme.txt') },
  memory__add_observations: { observations: [] },
  memory__create_entities: { entities: [] },
  memory__create_relations: { relations: [] },
  memory__delete_entities: { entityNames: [] },
  memory__delete_observations: { deletions: [] },
  memory__delete_relations: { relations: [] },
  memory__open_nodes: { names: [] },
  memory__recall: { query: 'x' },
  shop__with_shipping: { a: 2 },
  gateway__search_tools: { query: 'delete what is remembered' },
  gateway__describe_tool: { name: 'memory__recall' },
  gateway__call_tool: { name: 'memory__recall', arguments: { query: 'x' } },
}
/** There, and in nobody's toolset: what is filtered, and names that others took the place of. */
const GONE = ['files__write_file', 'files__read_file', 'files__list_allowed_directories', 'memory__search_nodes']
const RENAMED = ['shop__get-sum', 'everything__get-sum', 'shop__echo', 'desk__sign_in']

/** The table of the page: a row for each tool, a column for each user and path. */
const [head = [], , ...rows] = readFileSync(join(FOLDER, 'README.md'), 'utf8')
  .split('\n')
  .filter((line) => line.startsWith('|'))
  .map((line) =>
    line
      .split('|')
      .slice(1, -1)
      .map((cell) => cell.trim().replaceAll('`', '')),
  )
const COLUMNS = head.slice(1).map((title, at) => {
  const [user = '', path = ''] = title.split(' ')
  return { user: user as User, path, cells: new Map(rows.map(([tool = '', ...cells]) => [tool, cells[at] ?? ''])) }
})

/** A cell as a host finds it: whether the tool is listed, whether a person is asked first, whether it answers. */
const seenBy = async (host: Host, listed: readonly string[], tool: string): Promise<string> => {
  try {
    const { isError, asked, text } = await host.call(tool, ARGUMENTS[tool])
    if (isError) return text
    return [listed.includes(tool) ? 'yes' : 'found', ...(asked.includes('form') ? ['asks'] : [])].join(', ')
  } catch (error) {
    const isUnknown = (error as { code?: unknown }).code === -32602 && String(error).includes(`Unknown tool: ${tool}`)
    return isUnknown && !listed.includes(tool) ? 'no' : String(error)
  }
}

describe.each(Object.keys(HOSTS) as Kind[])('a host of %s', (kind) => {
  test.each(COLUMNS)('of $user at $path sees and can call exactly what the page says', async ({ user, path, cells }) => {
    await signedIn(user)
    await using host = await HOSTS[kind](scene.at(path), scene.people[user])
    const listed = await host.listed()
    const expected = new Map([...cells, ...[...GONE, ...RENAMED].map((tool): [string, string] => [tool, 'no'])])
    const seen = new Map<string, string>()
    for (const tool of expected.keys()) seen.set(tool, await seenBy(host, listed, tool))
    expect(Object.fromEntries(seen)).toEqual(Object.fromEntries(expected))
    expect(listed.filter((tool) => !cells.has(tool))).toEqual([])
  })
})

/** What was refused so far, as the audit log is to have it. */
const refused: JsonMap[] = []

describe('what is tried at the door', () => {
  test.each(Object.entries(ATTACKS))('%s is refused', async (_name, { act, seen, denied }) => {
    expect(await act(scene)).toMatchObject(seen)
    refused.push(denied)
  })

  test('T-07 B235 the token of a host is worth nothing at the desk', async () => {
    const reply = await send(new URL(scene.team.desk.url), {
      headers: bearer(scene.people.alice.token),
      body: request(1, 'tools/list'),
    })
    expect(reply.status).toBe(401)
  })

  test('T-08 the page of a sign-in can be framed by nobody', async () => {
    const { headers } = await new Browser().open((await newcomer(scene)).link)
    expect(headers.get('content-security-policy')).toContain("frame-ancestors 'none'")
    expect(headers.get('x-frame-options')).toBe('DENY')
  })
})

test('a pinned argument is in no schema, and a toolset has words of its own', async () => {
  const definitionOf = async (path: string, name: string): Promise<JsonMap | undefined> => {
    const { result } = await scene.post({ token: scene.people.carol.token, path }, 'tools/list', modern())
    return ((result ?? {})['tools'] as JsonMap[]).find((tool) => tool['name'] === name)
  }
  const { inputSchema } = (await definitionOf('/mcp', 'shop__with_shipping')) ?? {}
  expect(inputSchema).toMatchObject({ properties: { a: { type: 'number' } }, required: ['a'] })
  expect(inputSchema).not.toHaveProperty('properties.b')
  expect(await definitionOf('/mcp', 'memory__recall')).toMatchObject({ description: 'What the team knows of a word.' })
  expect((await definitionOf('/mcp/ops', 'memory__recall'))?.['description']).not.toBe('What the team knows of a word.')
})

describe('the lock file', () => {
  const check = async (config: string): Promise<{ code: unknown; said: string }> => {
    const env = { ...process.env, ...scene.team.env }
    const [program, ...words] = TRUNKLINE
    const child = spawn(program, [...words, 'check', '--locked', '-c', config], { env, stdio: ['ignore', 'pipe', 'pipe'] })
    const chunks = [child.stdout, child.stderr].map(async (stream) => Buffer.concat(await stream.toArray()).toString())
    const [said, [code]] = await Promise.all([Promise.all(chunks), once(child, 'exit')])
    return { code, said: said.join('') }
  }

  test('T-17 is what the servers offer; the desk, which lists to its callers alone, is told', async () => {
    const { code, said } = await check(CONFIG)
    expect(said).toContain('desk: is not locked')
    expect(said).toContain('trunkline.lock: ok for 3 servers')
    expect(code).toBe(0)
  })

  test('T-17 edited by hand is refused with its place, and so is a start with it', async () => {
    await using folder = await mkdtempDisposable(join(tmpdir(), 'team-lock-'))
    const lock = readFileSync(join(FOLDER, 'trunkline.lock'), 'utf8')
    const edited = lock.replace('Delete multiple entities', 'Send multiple entities')
    expect(edited).not.toBe(lock)
    const config = join(folder.path, 'trunkline.yaml')
    await copyFile(CONFIG, config)
    await writeFile(join(folder.path, 'trunkline.lock'), edited)
    const { code, said } = await check(config)
    expect(code).toBe(2)
    expect(said).toMatch(/trunkline\.lock:\d+:\d+.*restore it from git, or write a new one: trunkline lock/)
    await expect(startTrunkline(config, { env: scene.team.env })).rejects.toThrow(/trunkline\.lock:\d+:\d+/)
  })
})

test('T-14 every refusal is in the audit log, and no credential is in any log', async () => {
  expect(await scene.team.trunkline.stop()).toBe(0)
  const lines = await scene.team.audit()
  const denied = lines.filter(({ decision }) => decision === 'denied')
  for (const facts of refused) {
    const found = denied.findIndex((line) => Object.entries(facts).every(([name, value]) => line[name] === value))
    expect(found, JSON.stringify(facts)).toBeGreaterThanOrEqual(0)
    denied.splice(found, 1)
  }
  expect(new Set(lines.map(({ principal }) => principal))).toContain(JSON.stringify([scene.issuer.issuer, 'sub', 'alice']))
  const atDesk = scene.team.desk.came.flatMap((header) => header?.replace('Bearer ', '') ?? [])
  expect(scene.team.trunkline.said.filter((line) => line.includes('toolset '))).toEqual([])
  const said = JSON.stringify(lines) + scene.team.trunkline.said.join('\n')
  expect([...scene.secrets, ...atDesk].filter((secret) => secret === '' || said.includes(secret))).toEqual([])
})
