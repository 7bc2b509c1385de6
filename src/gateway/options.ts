/** Options of the routing core: naming, lists, caching. */

import { DEFAULT_PARKING } from '../era/host/parking-options.ts'
import type { ParkingOptions } from '../era/host/parking-options.ts'
import type { RateRule } from './limits/rates.ts'
import type { OverflowOptions } from './limits/overflow.ts'
import type { ToolsetOptions } from '../catalog/view/toolset.ts'

export interface GatewayOptions {
  /** `never`: original names and URIs everywhere, duplicates owned by configuration order (BRIDGING 4.2). */
  readonly prefix: 'always' | 'never'
  /** Longest exposed name: 16 to 128. */
  readonly maxNameLength: number
  readonly collision: 'warn' | 'error'
  /** How long the first list waits for servers of which nothing is stored, and a legacy handshake at a bridge for the legacy side of one. */
  readonly listBudgetMs: number
  /** How long the first `initialize` or `server/discover` on a pipe waits for the same; 0: not at all. */
  readonly handshakeBudgetMs: number
  /** Upper bound of `ttlMs` on merged lists. */
  readonly listTtlCapMs: number
  /** How long a list of a legacy server is believed, with and without its `listChanged`. */
  readonly legacyTtlMs: number
  readonly legacyPollMs: number
  /** Age at which a list is read again for a host that asks for it. */
  readonly freshMs: number
  /** A page of a merged list holds at most this many entries and bytes. */
  readonly pageMaxItems: number
  readonly pageMaxBytes: number
  /** Resources that one session, or one stream of changes, watches. */
  readonly maxSubscriptions: number
  /** Catalogs kept of principals that some server lists something of their own. */
  readonly maxPersonalCatalogs: number
  /** Servers that start at the same time. */
  readonly maxStarts: number
  /** Calls sent a second time, in per cent of all; 0: none. */
  readonly retryPercent: number
  /** Whether hosts that know tasks get them. */
  readonly tasks: boolean
  /** Calls of modern hosts that wait for answers. */
  readonly parking: ParkingOptions
  /** Every rate limit there is, whatever it is of. */
  readonly rates: readonly RateRule[]
  /** What did not fit into results, kept to be read. */
  readonly results: OverflowOptions
  /** Bytes of one server's instructions, and of all. */
  readonly instructionsMaxBytes: number
  readonly instructionsTotalBytes: number
  /** Named parts of the catalog, in the order of the configuration. */
  readonly toolsets: readonly ToolsetOptions[]
  /** The OAuth scopes that hosts are asked for: `mcp:<key>` and `mcp:<key>:write` among them limit what is shown (BRIDGING 6.1). */
  readonly scopes: readonly string[]
}

export const DEFAULT_GATEWAY: GatewayOptions = {
  prefix: 'always',
  maxNameLength: 48,
  collision: 'warn',
  listBudgetMs: 5_000,
  handshakeBudgetMs: 200,
  listTtlCapMs: 60_000,
  legacyTtlMs: 300_000,
  legacyPollMs: 30_000,
  freshMs: 1_000,
  pageMaxItems: 5_000,
  pageMaxBytes: 4 * 1024 * 1024,
  maxSubscriptions: 256,
  maxPersonalCatalogs: 1_000,
  maxStarts: 4,
  retryPercent: 10,
  tasks: true,
  parking: DEFAULT_PARKING,
  rates: [],
  results: { ttlMs: 10 * 60_000, maxBytes: 64 * 1024 * 1024 },
  instructionsMaxBytes: 2_000,
  instructionsTotalBytes: 8_000,
  toolsets: [],
  scopes: [],
}
