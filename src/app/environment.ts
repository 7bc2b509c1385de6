/** What the process around a gateway gives it: passed in by the program, or by tests. */
import type { Readable, Writable } from 'node:stream'
import type { Log } from '../downstream/environment.ts'
import type { BackoffOptions } from '../downstream/pacing/backoff.ts'
import type { SpareOptions } from '../downstream/spare.ts'
import type { Redactor } from '../redactor.ts'
import type { ReplicaTimes } from '../replicas/lease.ts'
import type { EndpointPath, Layer } from '../rpc/call.ts'
import type { Store } from '../store/store.ts'
import type { Member } from './member.ts'

/** What of the process around it a gateway uses. */
export interface RuntimeEnvironment {
  readonly log: Log
  /** Learns the secrets of every configuration that is applied; one of its own by default. */
  readonly redactor?: Redactor
  /** Where helper programs are looked for. */
  readonly path: string | undefined
  /** Serve one host on these streams instead of listening (`trunkline stdio`). */
  readonly pipe?: HostStreams & { readonly path?: EndpointPath }
  readonly backoff?: BackoffOptions
  readonly spare?: SpareOptions
  /** Policies of the embedding program: each call passes them once, after authentication and rate limits, under its exposed name. */
  readonly policies?: readonly Layer[]
  readonly replicaTimes?: ReplicaTimes
  /** In place of what `store` names, and closed by its owner: shared by several gateways of one process. */
  readonly store?: Store
  /** This process is one of several of this machine that serve one configuration (`listen.workers`). */
  readonly member?: Member
}

/** The two directions of a host's pipe. */
export interface HostStreams {
  readonly input: Readable
  readonly output: Writable
}
