/**
 * A snapshot of a running gateway from which a plan is made: digests of its options, the lists of its servers as they were read, and
 * the lists of hosts. It crosses the admin socket as JSON, so that the command line can plan another file: that file and its secrets
 * stay in the command, and those of the running configuration in the process.
 */
import { createHash, randomBytes } from 'node:crypto'
import type { Running } from '../../app/running.ts'
import { decodeInventory, encodeInventory, perKind } from '../../catalog/inventory.ts'
import type { EncodedInventory, Entry, Inventory, ListKind } from '../../catalog/inventory.ts'
import { mapRows } from '../../catalog/view/view.ts'
import type { Pin } from '../../catalog/lock/pinned.ts'
import { estimateTokens } from '../../catalog/tokens.ts'
import { fingerprint } from '../../config/change/fingerprints.ts'
import type { ConfigurationFingerprints, Fingerprints } from '../../config/change/fingerprints.ts'
import type { Configuration } from '../../config/options.ts'
import type { RuntimeEnvironment } from '../../config/runtime-environment.ts'
import { VERSION } from '../../version.ts'
import { MODERN } from '../../wire/protocol/revisions.ts'
import { toolsetCosts } from '../catalog/toolset-costs.ts'
import type { Cost, ToolsetCost } from '../catalog/toolset-costs.ts'

/** Incremented when a member changes its meaning; other formats are not read. */
export const BASIS_FORMAT = 1

export interface Basis {
  readonly format: number
  readonly version: string
  readonly pid: number
  /** Absolute paths, the main one first. */
  readonly files: readonly string[]
  readonly emptyFiles: readonly string[]
  readonly guards: Configuration['guards']
  /** Options of the command line of the running process that replace those of its files. */
  readonly overrides: Overrides
  /** Base64 of 32 bytes, used for this basis only: the salt of every digest of a configuration. */
  readonly salt: string
  readonly configuration: ConfigurationFingerprints
  /** Digests of the variables of the environment. */
  readonly env: Fingerprints
  readonly warnings: readonly string[]
  readonly servers: readonly ServerBasis[]
  /** The lists at `/mcp`. */
  readonly lists: Readonly<Record<ListKind, readonly ListedEntry[]>>
  readonly total: Cost
  readonly toolsets: readonly (readonly [name: string, cost: ToolsetCost])[]
  /** Problems with the names of the catalog. */
  readonly problems: readonly string[]
}

export type Overrides = Pick<NonNullable<RuntimeEnvironment['overrides']>, 'listen' | 'state' | 'allowUnauthenticatedNetwork'>

export interface ServerBasis {
  readonly key: string
  readonly inFlight: number
  /** The lists as the server sent them, before any policy; `undefined`: not known. */
  readonly offered: Inventory | undefined
  /** Its lists contain the sign-in tool only. */
  readonly isSignedOut: boolean
  /** By tool, the first definition. */
  readonly pins: Readonly<Record<string, Pin>>
}

/** One entry of the lists of hosts. */
export interface ListedEntry {
  readonly name: string
  readonly digest: string
  /** Estimated. */
  readonly tokens: number
}

/** `hide` removes secrets from every text of a server; the default is for a basis that does not leave the process. */
export const basisOf = (
  { configuration, fleet, gateway }: Running,
  { env, overrides: { listen, state, allowUnauthenticatedNetwork } = {} }: Pick<RuntimeEnvironment, 'env' | 'overrides'>,
  hide: <T>(value: T) => T = (value) => value,
): Basis => {
  const salt = randomBytes(32)
  const whole = gateway.feed.whole(MODERN)
  const costs = toolsetCosts(configuration, whole.catalog)
  return {
    format: BASIS_FORMAT,
    version: VERSION,
    pid: process.pid,
    files: configuration.files,
    emptyFiles: configuration.emptyFiles,
    guards: configuration.guards,
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
    lists: perKind((kind) => mapRows(whole.list(kind), ({ exposed }, bytes) => listedEntry(hide(exposed), bytes, hide))),
    total: whole.cost,
    toolsets: [...costs],
    problems: hide(whole.catalog.problems.map(({ message }) => message)),
  }
}

/** A digest of each variable, so that different ones can be named. */
export const environmentOf = (env: RuntimeEnvironment['env'], salt: Buffer): Fingerprints =>
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

/** The inventory without secrets. */
const hidden = (inventory: Inventory, hide: <T>(value: T) => T): Inventory => {
  const { lists, ...rest } = inventory
  const entry = (one: Entry): Entry => {
    const text = one.raw.toString()
    const shown = hide(text)
    return shown === text ? one : { ...one, original: hide(one.original), raw: Buffer.from(shown) }
  }
  return { ...hide(rest), lists: perKind((kind) => lists[kind].map(entry)) }
}

const hiddenPin = ({ digest, definition }: Pin, hide: (text: string) => string): Pin => ({
  digest,
  ...(definition !== undefined && { definition: hide(definition) }),
})

/** The basis with definitions as text, for JSON. */
export const encodeBasis = (basis: Basis): object => ({
  ...basis,
  servers: basis.servers.map(({ offered, ...server }) => ({
    ...server,
    ...(offered !== undefined && { offered: encodeInventory(offered) }),
  })),
})

interface EncodedBasis extends Omit<Basis, 'servers'> {
  readonly servers: readonly (Omit<ServerBasis, 'offered'> & { readonly offered?: EncodedInventory })[]
}

/** `json`: the result of `encodeBasis`, of this version; see `BASIS_FORMAT`. */
export const decodeBasis = (json: EncodedBasis): Basis => ({
  ...json,
  servers: json.servers.map(({ offered, ...server }) => ({ ...server, offered: offered && decodeInventory(offered) })),
})
