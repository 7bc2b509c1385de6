/** Hosts on pipes: the one host of `trunkline stdio`, and those that attach to a running process. */
import { LOCAL } from '../auth/identity.ts'
import type { ListenerContext } from '../host/listener-context.ts'
import type { HostOptions } from '../host/options.ts'
import { StdioListener } from '../host/stdio/stdio-listener.ts'
import type { StdioOptions } from '../host/stdio/stdio-listener.ts'
import type { EndpointPath } from '../rpc/call.ts'
import { HostPipe } from '../transport/pipe/stdio-host.ts'
import { readEnds } from '../wire/message/message-ends.ts'
import { untilAnswered } from './drain.ts'
import type { HostStreams } from './environment.ts'
import { NoEndpoint } from './running.ts'
import { within } from '../time/within.ts'

/** How long relays may take to confirm that they send no more requests. */
const RELAY_MS = 1_000

export interface ServedPipe {
  readonly pipe: HostPipe
  readonly listener: StdioListener
  /** Resolves when the host has disconnected. */
  readonly hostLeft: Promise<void>
}

export class HostPipes {
  readonly #context: ListenerContext
  readonly #served = new Set<ServedPipe>()

  constructor(context: ListenerContext) {
    this.#context = context
  }

  /** Number of requests without an answer. */
  get inFlight(): number {
    return [...this.#served].reduce((sum, { listener }) => sum + listener.inFlight, 0)
  }

  /** Throws `NoEndpoint` if the path names no endpoint. */
  serve(streams: HostStreams, path: EndpointPath, options: Pick<StdioOptions, 'introduced' | 'isRelay'>): ServedPipe {
    const context = this.#context
    const scope = context.core.scopeFor(LOCAL, path)
    if (scope === undefined) throw new NoEndpoint(path)
    const pipe = new HostPipe(streams.input, streams.output, {
      maxLineBytes: context.options.limits.maxBodyBytes,
      stallMs: context.options.limits.writeStallMs,
      bodies: context.bodies,
    })
    const listener = new StdioListener(pipe, { ...options, scope, principal: LOCAL.principal }, context)
    const hostLeft = new Promise<void>((resolve) => {
      pipe.open({
        line: (line) => listener.receive(line),
        overflow: (head, tail) => listener.overflow(readEnds(head, tail)),
        ended: () => resolve(),
      })
    })
    const served = { pipe, listener, hostLeft }
    this.#served.add(served)
    return served
  }

  /** Applies a reload to open pipes. */
  adopt({ limits }: Pick<HostOptions, 'limits'>): void {
    for (const { pipe } of this.#served) pipe.resize(limits.maxBodyBytes)
  }

  /** Serves one more host; resolves when it has disconnected and its requests are answered or given up. Rejects with `NoEndpoint`. */
  async attach(streams: HostStreams, path: EndpointPath, isRelay: boolean): Promise<void> {
    const served = this.serve(streams, path, { introduced: () => undefined, isRelay })
    await served.hostLeft
    await untilAnswered(() => served.listener.inFlight, this.#context.options.drainMs)
    await this.#release(served)
  }

  /** Resolves when all relays have confirmed that they send no more requests, at the latest after `RELAY_MS`. */
  async drain(): Promise<void> {
    await within(RELAY_MS, Promise.all([...this.#served].map(({ listener }) => listener.drain())))
  }

  async #release(served: ServedPipe): Promise<void> {
    served.listener.close()
    await served.pipe.close()
    this.#served.delete(served)
  }

  async close(): Promise<void> {
    await Promise.all([...this.#served].map((served) => this.#release(served)))
  }
}
