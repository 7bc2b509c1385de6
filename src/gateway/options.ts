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
  /** How long the first list waits for servers without a stored inventory, and a legacy handshake at a bridge for its server's legacy lists. */
  readonly listBudgetMs: number
  /** How long the first `initialize` or `server/discover` on a pipe waits for servers without a stored inventory; 0: not at all. */
  readonly handshakeBudgetMs: number
  /** Upper bound of `ttlMs` on merged lists. */
  readonly listTtlCapMs: number
  /** Lifetime of lists of legacy servers, with and without `listChanged`. */
  readonly legacyTtlMs: number
  readonly legacyPollMs: number
  /** Age at which a list is read again for a host that asks for it. */
  readonly freshMs: number
  /** Entries and bytes of one page of a merged list. */
  readonly pageMaxItems: number
  readonly pageMaxBytes: number
  /** Resources that one session or one change stream may watch. */
  readonly maxSubscriptions: number
  /** Cached catalogs of principals with lists of their own. */
  readonly maxPersonalCatalogs: number
  /** Servers that start at the same time. */
  readonly maxStarts: number
  /** Calls sent a second time, in per cent of all; 0: none. */
  readonly retryPercent: number
  /** Whether tasks are offered to hosts. */
  readonly tasks: boolean
  readonly parking: ParkingOptions
  readonly rates: readonly RateRule[]
  readonly results: OverflowOptions
  /** Bytes of one server's instructions, and of all. */
  readonly instructionsMaxBytes: number
  readonly instructionsTotalBytes: number
  /** Named parts of the catalog, in the order of the configuration. */
  readonly toolsets: readonly ToolsetOptions[]
  /** The OAuth scopes requested from hosts; `mcp:<key>` and `mcp:<key>:write` limit views (BRIDGING 6.1). */
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
