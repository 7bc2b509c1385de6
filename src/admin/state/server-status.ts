/** The status of a server as plain data. */
import type { Finding } from '../../catalog/inventory.ts'
import type { DeviationCount } from '../../rpc/fidelity.ts'

/** One server as `ps --json` prints it. Times in milliseconds. */
export interface ServerStatus {
  readonly key: string
  /** `starting`, `healthy`, `degraded`, `down`, `failed` or `draining` (docs/operations.md). */
  readonly state: string
  /** The reason if it is not healthy. */
  readonly reason: string | undefined
  /** It is not running, and its next use starts it (`lifecycle.start: lazy`); its state is `starting`. */
  readonly isResting: boolean
  /** The operator must sign in to it: `trunkline login`. */
  readonly needsSignIn: boolean
  /** The current callers of a server to which each caller signs in separately, where hosts are authenticated. `state` is the best of theirs. */
  readonly callers: CallerCount | undefined
  readonly transport: string
  readonly revision: string | undefined
  readonly tools: number
  readonly resources: number
  readonly prompts: number
  /** Estimated cost of its listed tools for a model. */
  readonly tokens: number
  readonly links: number
  /** Its processes, each with the memory of its process group. */
  readonly processes: readonly ProcessStatus[]
  readonly inFlight: number
  /** Calls that wait for a free slot (`limits.concurrency`). */
  readonly queued: number
  /** Outages since it was configured; consecutive failures count as one. */
  readonly failures: number
  /** Time until the next attempt to connect; `undefined`: it is connected, an attempt is running, or none is planned. */
  readonly nextTryMs: number | undefined
  /** While its process starts: for how long, and what it probably does. */
  readonly startup: Startup | undefined
  readonly leftOut: readonly { readonly kind: string; readonly name: string; readonly reason: string }[]
  /** Findings about served definitions: hidden characters, changes. */
  readonly findings: readonly Finding[]
  readonly warnings: readonly string[]
  /** How often its calls were translated with loss, since the start. */
  readonly fidelity: readonly DeviationCount[]
  /** The last lines on the stderr of its process, oldest first, while it is not healthy. */
  readonly stderr: readonly string[]
}

/** `memoryBytes`: resident memory of its process group; `undefined` where the system does not report it (only Linux does). */
export interface ProcessStatus {
  readonly pid: number
  readonly memoryBytes: number | undefined
  readonly uptimeMs: number
}

/** The number of callers of a server, and of those that must sign in first. */
export interface CallerCount {
  readonly all: number
  readonly unsigned: number
}

/** While a process starts. */
export interface Startup {
  /** Milliseconds since its process was started. */
  readonly forMs: number
  /** What its command probably does; `undefined`: it downloads nothing. */
  readonly fetching: string | undefined
  /** The latest line on stderr. */
  readonly printed: string | undefined
}
