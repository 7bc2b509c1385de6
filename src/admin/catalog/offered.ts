/** What servers say of themselves now, before any policy of ours: what a lock is written from, and compared with. */
import type { Running } from '../../app/running.ts'
import type { Catalog } from '../../catalog/catalog.ts'
import { lockServer } from '../../catalog/lock/lock.ts'
import type { LockChange, ServerLock } from '../../catalog/lock/lock.ts'
import type { ServerOptions } from '../../downstream/options.ts'
import type { Redactor } from '../../redactor.ts'
import { Failure } from '../../wire/message/failure.ts'

/** One server as it offers itself. */
export interface OfferedServer {
  readonly key: string
  /** `undefined`: it could not be asked. */
  readonly lock: ServerLock | undefined
  /** Why not; empty where it was asked. */
  readonly reason: string
  /** The server lists to signed-in callers only, so the operator sees nothing to approve. */
  readonly isForCallers: boolean
}

/**
 * Asks the servers of these keys, or all; `apps`: also what they list to hosts that run MCP Apps. Never rejects. What repeats a secret
 * of ours cannot be told, and must not stand in git (T-14).
 */
export const readOffered = (
  { fleet }: Running,
  keys: readonly string[],
  apps: boolean,
  redactor: Redactor,
): Promise<OfferedServer[]> =>
  Promise.all(
    fleet.downstreams$.value
      .filter(({ options }) => keys.length === 0 || keys.includes(options.key))
      .map(async (downstream): Promise<OfferedServer> => {
        const { key } = downstream.options
        try {
          const offered = await downstream.offered(apps)
          const lock = lockServer(key, offered.all, offered.apps)
          const telling = [...lock.entries, ...lock.apps].find(({ definition }) => redactor.hide(definition) !== definition)
          if (telling === undefined) return { key, lock, reason: '', isForCallers: false }
          const reason = redactor.hide(`${telling.kind} "${telling.name}" repeats a secret of the configuration`)
          return { key, lock: undefined, reason, isForCallers: false }
        } catch (error) {
          const reason = error instanceof Failure ? error.message : String(error)
          const isForCallers = downstream.personal !== undefined && error instanceof Failure && error.kind === 'auth_required'
          return { key, lock: undefined, reason: redactor.hide(reason), isForCallers }
        }
      }),
  )

/** One definition that is not as it was approved. */
export interface Deviating extends LockChange {
  /** Key of the server. */
  readonly server: string
  /** How hosts know it, or would. */
  readonly exposed: string
}

/** What of all servers is not as it was approved. */
export const readChanges = ({ fleet, gateway }: Running): Deviating[] =>
  fleet.downstreams$.value.flatMap((downstream) =>
    downstream.offers.changes(downstream.options).map((change) => ({
      ...change,
      server: downstream.options.key,
      exposed: exposedName(gateway.feed.catalog, downstream.options, change),
    })),
  )

/** The name it is listed under; of what is not listed, the one it would have by the rules. */
export const exposedName = (
  { lists }: Pick<Catalog, 'lists'>,
  { key, prefix }: Pick<ServerOptions, 'key' | 'prefix'>,
  { kind, name }: LockChange,
): string => {
  if (kind === 'instructions') return key
  const row = lists[kind].find(({ server, entry }) => server.key === key && entry.original === name)
  return row?.exposed ?? (kind === 'tools' || kind === 'prompts' ? `${prefix}__${name}` : name)
}
