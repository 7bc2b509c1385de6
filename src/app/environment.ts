/** The environment of a gateway: passed in by the program, or by tests. */
import type { Readable, Writable } from 'node:stream'
import type { Log } from '../values/log.ts'
import type { BackoffOptions } from '../downstream/pacing/backoff.ts'
import type { SpareOptions } from '../downstream/spare.ts'
import type { Redactor } from '../redactor.ts'
import type { ReplicaTimes } from '../replicas/lease.ts'
import type { EndpointPath, Layer } from '../rpc/call.ts'
import type { Store } from '../store/store.ts'
import type { Member } from './member.ts'

/** What a gateway gets besides its configuration. */
export interface RuntimeEnvironment {
  readonly log: Log
  /** Learns the secrets of every configuration that is applied; default: a new one. */
  readonly redactor?: Redactor
  /** `PATH` for helper programs. */
  readonly path: string | undefined
  /** Registers a callback for the exit of this process, which kills what servers still run; returns how to remove it. */
  readonly atExit?: (callback: () => void) => () => void
  /** Serves one host on these streams, without listening (`trunkline stdio`). */
  readonly pipe?: HostStreams & { readonly path?: EndpointPath }
  readonly backoff?: BackoffOptions
  readonly spare?: SpareOptions
  /** Policies of the embedding program: each call passes them once, after authentication and rate limits, under its exposed name. */
  readonly policies?: readonly Layer[]
  /** Number of open calls of the embedding program itself; the end of the gateway waits for them as for those of hosts. */
  readonly ownInFlight?: () => number
  readonly replicaTimes?: ReplicaTimes
  /** Replaces the configured `store`; shared by several gateways of one process, and closed by its owner. */
  readonly store?: Store
  /** Set if this process is one of several that serve one configuration on this machine (`listen.workers`). */
  readonly member?: Member
}

/** The two directions of a host's pipe. */
export interface HostStreams {
  readonly input: Readable
  readonly output: Writable
}
