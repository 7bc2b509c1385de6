/** The definitions that servers offer now, before any policy: a lock is written from them, and compared with them. */
import type { Running } from '../../app/running.ts'
import type { Catalog } from '../../catalog/catalog.ts'
import { lockServer } from '../../catalog/lock/lock.ts'
import type { LockChange, ServerLock } from '../../catalog/lock/lock.ts'
import type { ServerOptions } from '../../downstream/options.ts'
import type { Redactor } from '../../redactor.ts'
import { Failure } from '../../wire/message/failure.ts'

/** The offer of one server. */
export interface OfferedServer {
  readonly key: string
  /** `undefined`: it could not be read. */
  readonly lock: ServerLock | undefined
  /** Why it could not be read; else empty. */
  readonly reason: string
  /** The server lists to signed-in callers only, so the operator sees nothing to approve. */
  readonly isForCallers: boolean
}

/**
 * Reads the offers of these servers, or of all; `apps`: also those for hosts with MCP Apps. Never rejects. A definition that repeats a
 * secret of ours makes the whole offer unavailable, because it must not be stored in git (T-14).
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
          const leaking = [...lock.entries, ...lock.apps].find(({ definition }) => redactor.hide(definition) !== definition)
          if (leaking === undefined) return { key, lock, reason: '', isForCallers: false }
          const reason = redactor.hide(`${leaking.kind} "${leaking.name}" repeats a secret of the configuration`)
          return { key, lock: undefined, reason, isForCallers: false }
        } catch (error) {
          const reason = error instanceof Failure ? error.message : String(error)
          const isForCallers = downstream.personal !== undefined && error instanceof Failure && error.kind === 'auth_required'
          return { key, lock: undefined, reason: redactor.hide(reason), isForCallers }
        }
      }),
  )

/** A definition that differs from the approved one. */
export interface UnapprovedChange extends LockChange {
  /** Key of the server. */
  readonly server: string
  /** Exposed name; of an entry that is not listed, the one it would have. */
  readonly exposed: string
}

/** All definitions that differ from the approved ones. */
export const readChanges = ({ fleet, gateway }: Running): UnapprovedChange[] =>
  fleet.downstreams$.value.flatMap(({ offers, options }) =>
    offers.changes(options).map(unapprovedIn(gateway.feed.catalog, options)),
  )

/** A change with its server and the exposed name. */
export const unapprovedIn =
  (catalog: Pick<Catalog, 'lists'>, options: Pick<ServerOptions, 'key' | 'prefix'>) =>
  (change: LockChange): UnapprovedChange => ({
    ...change,
    server: options.key,
    exposed: exposedName(catalog, options, change),
  })

/** Exposed name of an entry; of one that is not listed, the name by the rules of naming. */
export const exposedName = (
  { lists }: Pick<Catalog, 'lists'>,
  { key, prefix }: Pick<ServerOptions, 'key' | 'prefix'>,
  { kind, name }: LockChange,
): string => {
  if (kind === 'instructions') return key
  const row = lists[kind].find(({ server, entry }) => server.key === key && entry.original === name)
  return row?.exposed ?? (kind === 'tools' || kind === 'prompts' ? `${prefix}__${name}` : name)
}
