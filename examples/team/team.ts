/** The team's processes: the desk, and Trunkline in front of it and of three servers that it starts itself. */
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { freePort, startTrunkline } from '../run.ts'
import type { Trunkline } from '../run.ts'
import { startDesk } from './desk.ts'
import type { Desk } from './desk.ts'

export const CONFIG = fileURLToPath(new URL('trunkline.yaml', import.meta.url))

export interface Team extends AsyncDisposable {
  readonly trunkline: Trunkline
  readonly desk: Desk
  /** What `trunkline.yaml` asks for: with these any command of the configuration finds the same things. */
  readonly env: Readonly<Record<string, string>>
  /** Lines of the audit log so far. */
  audit(): Promise<readonly Readonly<Record<string, unknown>>[]>
}

/** On free ports, with the memory and the audit log in a folder of its own. `issuer`: of the tokens of everybody. */
export const startTeam = async (issuer: string): Promise<Team> => {
  await using stack = new AsyncDisposableStack()
  const folder = await mkdtemp(join(tmpdir(), 'team-'))
  stack.defer(() => rm(folder, { recursive: true, force: true }))
  const desk = stack.use(await startDesk(issuer))
  const port = await freePort()
  const env = {
    TEAM_ISSUER: issuer,
    TEAM_URL: `http://127.0.0.1:${port}/mcp`,
    TEAM_DESK: desk.url,
    TEAM_FOLDER: folder,
  }
  const trunkline = stack.use(await startTrunkline(CONFIG, { env, port }))
  // What it says once it has found out about each of its servers.
  await trunkline.hears(/^ {2}MCP {2}/)
  const owned = stack.move()
  return {
    trunkline,
    desk,
    env: { ...env, ...trunkline.env },
    audit: async () => {
      const lines = (await readFile(join(folder, 'audit.ndjson'), 'utf8')).split('\n').slice(0, -1)
      return lines.map((line) => JSON.parse(line) as Record<string, unknown>)
    },
    [Symbol.asyncDispose]: () => owned.disposeAsync(),
  }
}
