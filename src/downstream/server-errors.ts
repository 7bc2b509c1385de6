/** Adds server, era and status to errors, and recognises failures caused by the stop of the server. */
import { ServerError } from '../rpc/call.ts'
import type { Call } from '../rpc/call.ts'
import { Failure } from '../wire/message/failure.ts'
import type { FailureKind } from '../wire/message/failure.ts'
import { capabilityOf } from '../wire/protocol/methods.ts'
import type { Era } from '../wire/protocol/revisions.ts'
import type { DownstreamEnvironment } from './environment.ts'
import type { ServerStates } from './health/server-state.ts'
import type { ServerOptions } from './options.ts'
import type { ServerEras } from './server-eras.ts'

/** Failures of calls whose link ends; while the server is being stopped, the gateway has caused them. */
const LOST: ReadonlySet<FailureKind> = new Set(['lost', 'exited', 'unreachable'])

interface ServerErrorsSource {
  readonly options: () => ServerOptions
  readonly states: ServerStates
  readonly eras: ServerEras
  readonly environment: Pick<DownstreamEnvironment, 'isEnding'>
}

export class ServerErrors {
  readonly #source: ServerErrorsSource

  constructor(source: ServerErrorsSource) {
    this.#source = source
  }

  /** `era`: era of the link on which a server's error was received. `call`: the call that it answers. */
  located(error: unknown, era = this.#source.states.now.link?.era, call?: Call): unknown {
    const { options, states, environment } = this.#source
    if (error instanceof ServerError)
      return error.at({ server: options().key, era, ...(call !== undefined && { status: this.#statusOf(error, call, era) }) })
    if (!(error instanceof Failure)) return error
    const isOurs = states.now.isStopping && LOST.has(error.kind)
    const failure = isOurs ? new Failure('shutting_down', 'the server was stopped', error.facts, error) : error
    // A server that ends with the whole gateway is not named.
    return failure.kind === 'shutting_down' && environment.isEnding() ? failure : failure.at(options())
  }

  /**
   * The HTTP status of a server's error. A pipe has none, and the status of a legacy server is unrelated to JSON-RPC errors: its -32601
   * means an unknown name, not an unknown method, if the server declares the capability of the method.
   */
  #statusOf({ status, code }: ServerError, { method, caller }: Call, era: Era | undefined): number | undefined {
    const { states, eras } = this.#source
    if (states.now.link?.transport === 'http' && era === 'modern') return status ?? 200
    const capability = capabilityOf(method)
    const isDeclared = capability !== undefined && eras.inventoryFor(caller)?.capabilities[capability] !== undefined
    return code === -32601 && isDeclared ? 200 : undefined
  }
}
