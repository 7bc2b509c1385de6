/**
 * What is known of a running gateway that a plan is made from: digests of its options, the lists of its servers as they were read,
 * and what hosts see of them now. Crosses the admin socket as JSON, so that the command line can tell what another file would change:
 * that file and its secrets stay with the command, and those of the running configuration with the process.
 */
import { createHash, randomBytes } from 'node:crypto'
import type { Running } from '../../app/running.ts'
import { perKind } from '../../catalog/inventory.ts'
import type { Entry, Inventory, ListKind } from '../../catalog/inventory.ts'
import type { Pin } from '../../catalog/lock/pinned.ts'
import { estimateTokens } from '../../catalog/tokens.ts'
import { Views } from '../../catalog/view/view.ts'
import { fingerprint } from '../../config/change/fingerprints.ts'
import type { ConfigurationFingerprints, Fingerprints } from '../../config/change/fingerprints.ts'
import type { Context } from '../../config/runtime-environment.ts'
import { VERSION } from '../../version.ts'
import { MODERN } from '../../wire/protocol/revisions.ts'
import { toolsetCosts } from '../catalog/toolset-costs.ts'
import type { Cost, ToolsetCost } from '../catalog/toolset-costs.ts'

/** Raised when a member changes its meaning; only the same number is understood. */
export const BASIS_FORMAT = 1

export interface Basis {
  readonly format: number
  readonly version: string
  readonly pid: number
  /** Absolute paths, the main one first. */
  readonly files: readonly string[]
  readonly emptyFiles: readonly string[]
  /** What the command line said of the running process, in place of its files. */
  readonly overrides: Overrides
  /** Base64 of 32 bytes, of this basis alone: what every digest of a configuration is salted with. */
  readonly salt: string
  readonly configuration: ConfigurationFingerprints
  /** Of each variable of the environment. */
  readonly env: Fingerprints
  readonly warnings: readonly string[]
  readonly servers: readonly ServerBasis[]
  /** Under `/mcp`. */
  readonly lists: Readonly<Record<ListKind, readonly ListedEntry[]>>
  readonly total: Cost
  readonly toolsets: readonly (readonly [name: string, cost: ToolsetCost])[]
  /** What is wrong with the names of the catalog. */
  readonly problems: readonly string[]
}

export type Overrides = Pick<NonNullable<Context['overrides']>, 'listen' | 'state' | 'allowUnauthenticatedNetwork'>

export interface ServerBasis {
  readonly key: string
  readonly inFlight: number
  /** As the server says it, before any policy; `undefined`: nothing is known of it. */
  readonly offered: Inventory | undefined
  /** The tool for signing in stands in the place of its lists. */
  readonly isSignedOut: boolean
  /** By tool, what was seen first. */
  readonly pins: Readonly<Record<string, Pin>>
}

/** One entry as hosts are listed it. */
export interface ListedEntry {
  readonly name: string
  readonly digest: string
  /** An estimate. */
  readonly tokens: number
}

/** `hide` takes the secrets out of every text of a server; the identity where the basis does not leave the process. */
export const basisOf = (
  { configuration, fleet, gateway }: Running,
  { env, overrides: { listen, state, allowUnauthenticatedNetwork } = {} }: Pick<Context, 'env' | 'overrides'>,
  hide: <T>(value: T) => T = (value) => value,
): Basis => {
  const salt = randomBytes(32)
  const whole = gateway.feed.whole(MODERN)
  const views = new Views()
  const costs = toolsetCosts(configuration, (toolset) => views.of(whole.catalog, { revision: MODERN, toolset }))
  return {
    format: BASIS_FORMAT,
    version: VERSION,
    pid: process.pid,
    files: configuration.files,
    emptyFiles: configuration.emptyFiles,
    overrides: {
      ...(listen !== undefined && { listen }),
      ...(state !== undefined && { state }),
      ...(allowUnauthenticatedNetwork !== undefined && { allowUnauthenticatedNetwork }),
    },
    salt: salt.toString('base64'),
    configuration: fingerprint(configuration, { salt, env }),
    env: environmentOf(env, salt),
    warnings: hide(configuration.warnings),
    servers: fleet.downstreams$.value.map(
      ({
        options,
        inFlight,
        offers: {
          learned: { offered, isSignedOut, pins },
        },
      }) => ({
        key: options.key,
        inFlight,
        offered: offered && hidden(offered, hide),
        isSignedOut,
        pins: Object.fromEntries(Object.entries(pins).map(([tool, pin]) => [hide(tool), hiddenPin(pin, hide)])),
      }),
    ),
    lists: perKind((kind) => {
      const { rows, entries } = whole.list(kind)
      // Cast: there is an entry for each row.
      return rows.map(({ exposed }, at) => listedEntry(hide(exposed), entries[at]!, hide))
    }),
    total: whole.cost,
    toolsets: [...costs],
    problems: hide(whole.catalog.problems.map(({ message }) => message)),
  }
}

/** Of each variable, so that those that differ can be named. */
export const environmentOf = (env: Context['env'], salt: Buffer): Fingerprints =>
  Object.fromEntries(
    Object.entries(env).map(([name, value]) => [
      name,
      createHash('sha256')
        .update(salt)
        .update(value ?? '')
        .digest('base64url'),
    ]),
  )

export const listedEntry = (name: string, entry: Buffer, hide: (text: string) => string = (text) => text): ListedEntry => ({
  name,
  digest: createHash('sha256').update(hide(entry.toString())).digest('base64url'),
  tokens: estimateTokens(entry),
})

/** An inventory that may leave the process. */
const hidden = (inventory: Inventory, hide: <T>(value: T) => T): Inventory => {
  const { lists, ...rest } = inventory
  const entry = (one: Entry): Entry => {
    const text = one.raw.toString()
    const told = hide(text)
    return told === text ? one : { ...one, original: hide(one.original), raw: Buffer.from(told) }
  }
  return { ...hide(rest), lists: perKind((kind) => lists[kind].map(entry)) }
}

const hiddenPin = ({ digest, definition }: Pin, hide: (text: string) => string): Pin => ({
  digest,
  ...(definition !== undefined && { definition: hide(definition) }),
})

/** The same, with definitions as text, for JSON. */
export const encodeBasis = (basis: Basis): object => ({
  ...basis,
  servers: basis.servers.map(({ offered, ...server }) => ({
    ...server,
    ...(offered !== undefined && {
      offered: {
        ...offered,
        lists: perKind((kind) => offered.lists[kind].map((entry) => ({ ...entry, raw: entry.raw.toString() }))),
      },
    }),
  })),
})

interface EncodedBasis extends Omit<Basis, 'servers'> {
  readonly servers: readonly (Omit<ServerBasis, 'offered'> & {
    readonly offered?: Omit<Inventory, 'lists'> & {
      readonly lists: Readonly<Record<ListKind, readonly (Omit<Entry, 'raw'> & { readonly raw: string })[]>>
    }
  })[]
}

/** `json`: what `encodeBasis` made, in this version; see `BASIS_FORMAT`. */
export const decodeBasis = (json: EncodedBasis): Basis => ({
  ...json,
  servers: json.servers.map(({ offered, ...server }) => ({
    ...server,
    offered: offered && {
      ...offered,
      lists: perKind((kind) => offered.lists[kind].map((entry) => ({ ...entry, raw: Buffer.from(entry.raw) }))),
    },
  })),
})
