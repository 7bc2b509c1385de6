/** The addresses of the listeners for hosts: binds them, replaces them by a reload, closes them, and returns their URLs. */
import { Throttle } from '../../time/throttle.ts'
import { ConnectionCaps } from '../../transport/http1/server/connection/connection-caps.ts'
import type { ConnectionLimits } from '../../transport/http1/server/connection/connection-caps.ts'
import type { EventStream } from '../../transport/http1/server/request/event-stream.ts'
import type { HttpRequest, ListenerEvents } from '../../transport/http1/server/request/http-request.ts'
import { LINGER_MS, listenHttp } from '../../transport/http1/server/http-server.ts'
import type { HttpServerOptions, Listening } from '../../transport/http1/server/http-server.ts'
import { setMode } from '../../transport/http1/server/connection/listen-address.ts'
import type { ListenAddress, TcpAddress } from '../../transport/http1/server/connection/listen-address.ts'
import { trustedProxies } from '../../transport/http1/server/connection/trusted-proxies.ts'
import type { TrustedProxies } from '../../transport/http1/server/connection/trusted-proxies.ts'
import { isLoopbackHost } from '../../transport/loopback.ts'
import { asError } from '../../values/as-error.ts'
import { connectionsWithin } from '../limits/gauges.ts'
import type { ListenerContext } from '../listener-context.ts'
import type { Address, HostOptions } from '../options.ts'
import { publicUrlOf } from './public-url.ts'
import { until } from '../../time/within.ts'

/** Polling period of `stopAccepting`. */
const POLL_MS = 10
const ANY_LOOPBACK_PORT: Address = { host: '127.0.0.1', port: 0 }

export interface AddressEvents {
  /** `isLoopback`: the request arrived at a loopback address. */
  request(request: HttpRequest, isLoopback: boolean): void
  /** Called for requests at the port for sign-in pages. */
  signInRequest(request: HttpRequest): void
  /** A stream has ended before its host has read all of it. */
  finishing(stream: EventStream): void
}

export class Addresses {
  readonly #context: ListenerContext
  readonly #events: AddressEvents
  readonly #caps: ConnectionCaps
  readonly #troubles = new Throttle(1_000)
  #trusted: TrustedProxies | undefined
  /** By configured address. */
  #listening = new Map<string, Listening>()
  #servedElsewhere: readonly TcpAddress[] | undefined
  /** A loopback listener for sign-in pages only. */
  #signInListener: Promise<Listening> | undefined

  constructor(context: ListenerContext, events: AddressEvents) {
    this.#context = context
    this.#events = events
    this.#caps = new ConnectionCaps(() => connectionLimits(context), context.limits.hit)
    this.#trusted = trustedProxies(context.options.trustedProxies)
  }

  /** The bound TCP addresses with their actual ports, or those at which other processes serve hosts for this one. */
  get tcp(): readonly TcpAddress[] {
    return this.#bound.flatMap(({ tcp }) => tcp ?? [])
  }

  /** Sets the addresses at which other processes serve hosts for this one; links to pages use them. */
  servedAt(addresses: readonly TcpAddress[]): void {
    this.#servedElsewhere = addresses
  }

  get #bound(): readonly Pick<Listening, 'tcp' | 'path' | 'isSecure'>[] {
    if (this.#servedElsewhere === undefined) return [...this.#listening.values()]
    const isSecure = this.#context.options.tls !== undefined
    return this.#servedElsewhere.map((tcp) => ({ tcp, path: undefined, isSecure }))
  }

  /** Returns the URLs of a path: of TCP addresses, then of unix sockets in the form of VS Code (`unix:///run/x.sock#/mcp`). */
  urls(path: string): readonly string[] {
    const all = this.#bound
    return [
      ...all.flatMap(({ tcp, isSecure }) => (tcp === undefined ? [] : [`${urlOf(tcp, isSecure)}${path}`])),
      ...all.flatMap((listening) => (listening.path === undefined ? [] : [`unix://${listening.path}#${path}`])),
    ]
  }

  /** Resolves with the origin and path prefix for browsers. Without a listener it opens a loopback port for sign-in pages. */
  async origin(): Promise<string> {
    const publicUrl = publicUrlOf(this.#context.options)
    const first = this.#bound.find(({ tcp }) => tcp !== undefined)
    if (publicUrl !== undefined) return publicUrl
    if (first !== undefined) return originOf(first)
    this.#signInListener ??= listenHttp(
      ANY_LOOPBACK_PORT,
      serverOptions(this.#context.options),
      this.#context.bodies,
      this.#caps,
      this.#listenerEvents((request) => this.#events.signInRequest(request)),
    )
    // Binding is tried again by the next call.
    this.#signInListener.catch(() => (this.#signInListener = undefined))
    return originOf(await this.#signInListener)
  }

  /** Binds the addresses of `options`, new ones before old ones are closed. Rejects with the system's error, changing nothing. */
  async rebind(options: HostOptions): Promise<void> {
    const before = this.#listening
    const after = new Map<string, Listening>()
    try {
      for (const address of addressesOf(options)) {
        const name = nameOf(address)
        const known = before.get(name)
        if (known !== undefined && options.tls !== undefined) known.renew(options.tls)
        const listening = known ?? (await this.#bind(address, options))
        if (listening === undefined) continue
        after.set(name, listening)
        if ('fd' in address) refuseOpen(listening, options)
      }
      await this.#permit(options)
    } catch (error) {
      const bound = [...after].filter(([name]) => !before.has(name))
      await Promise.all(bound.map(([, listening]) => listening.close()))
      throw error
    }
    this.#listening = after
    this.#trusted = trustedProxies(options.trustedProxies)
    for (const [name, listening] of before) if (!after.has(name)) this.#retire(listening, options.drainMs)
  }

  /** Refuses new connections, and closes the address after the drain time. */
  #retire(listening: Listening, drainMs: number): void {
    void listening.stopAccepting()
    setTimeout(() => void listening.close(), drainMs).unref()
  }

  /** Gives an open unix socket the permissions of `options` (`listen.unix_mode`). */
  async #permit({ unix }: HostOptions): Promise<void> {
    const before = this.#context.options.unix
    if (unix === undefined || before?.path !== unix.path || before.mode === unix.mode) return
    await setMode(unix).catch((error: unknown) => {
      throw Object.assign(asError(error), { address: unix.path, option: 'listen.unix_mode' })
    })
  }

  async #bind(address: ListenAddress, options: HostOptions): Promise<Listening | undefined> {
    // For an inherited socket this is set once it listens, before any request is read.
    let isLoopback = 'host' in address && isLoopbackHost(address.host)
    try {
      const listening = await listenHttp(
        address,
        this.#serverOptions(options),
        this.#context.bodies,
        this.#caps,
        this.#listenerEvents((request) => this.#events.request(request, isLoopback)),
      )
      if ('fd' in address) isLoopback = listening.tcp !== undefined && isLoopbackHost(listening.tcp.host)
      return listening
    } catch (error) {
      const { code } = asError(error)
      // Without IPv6 the other addresses are enough.
      const isNoIpv6 =
        'host' in address &&
        address.host === '::1' &&
        options.addresses.length > 1 &&
        (code === 'EADDRNOTAVAIL' || code === 'EAFNOSUPPORT')
      if (isNoIpv6) return undefined
      const facts =
        'host' in address
          ? { address: nameOf(address), port: address.port }
          : { address: nameOf(address), option: 'path' in address ? 'listen.unix' : 'listen.systemd' }
      throw Object.assign(asError(error), facts)
    }
  }

  #serverOptions(options: HostOptions): HttpServerOptions {
    const { tls, takesProxyHeader } = options
    return {
      ...serverOptions(options),
      tls,
      takesProxyHeader,
      trusted: (address) => this.#trusted?.(address) === true,
      forwarded: () => this.#context.options.forwarded,
    }
  }

  #listenerEvents(request: (request: HttpRequest) => void): ListenerEvents {
    return {
      request,
      trouble: (error) => this.#troubled(error),
      reached: this.#context.limits.hit,
      finishing: (stream) => this.#events.finishing(stream),
    }
  }

  /** Logs an error of a connection; at most one line per second for all connections. */
  #troubled(error: Error): void {
    if (this.#troubles.due() !== undefined) this.#context.log.warn({ error: error.message }, 'trouble with connections of hosts')
  }

  /** Makes each answer close its connection, so that no proxy reuses a connection that is about to close. */
  endConnections(): void {
    for (const listening of this.#listening.values()) listening.endConnections()
  }

  /** Refuses new connections. Resolves when requests already sent on open connections have been received. */
  async stopAccepting(): Promise<void> {
    await Promise.all([...this.#listening.values()].map((listening) => listening.stopAccepting()))
    await until(() => this.#caps.open === 0, LINGER_MS, POLL_MS)
  }

  async close(): Promise<void> {
    const signIns = await this.#signInListener
    await Promise.all([...this.#listening.values(), ...(signIns === undefined ? [] : [signIns])].map((one) => one.close()))
  }
}

/** Returns the configured limits, reduced to what the file descriptors allow (F-29). */
const connectionLimits = ({ options: { limits }, maxDescriptors }: ListenerContext): ConnectionLimits => {
  const most = connectionsWithin(maxDescriptors)
  return most < limits.maxConnections ? { ...limits, maxConnections: most } : limits
}

const serverOptions = ({ limits, httpServer }: HostOptions): HttpServerOptions => ({ ...limits, httpServer })

/** Returns the origin of a bound address, with `localhost` for a wildcard address. */
const originOf = ({ tcp = ANY_LOOPBACK_PORT, isSecure }: Pick<Listening, 'tcp' | 'isSecure'>): string =>
  urlOf({ ...tcp, host: tcp.host === '0.0.0.0' || tcp.host === '::' ? 'localhost' : tcp.host }, isSecure)

const urlOf = ({ host, port }: TcpAddress, isSecure: boolean): string =>
  `${isSecure ? 'https' : 'http'}://${host.includes(':') ? `[${host}]` : host}:${port}`

/** Throws if the network can reach the socket that the service manager passed, and hosts are not authenticated (T-04). */
const refuseOpen = ({ tcp }: Listening, { auth, allowUnauthenticatedNetwork }: HostOptions): void => {
  if (tcp === undefined || isLoopbackHost(tcp.host) || auth !== undefined || allowUnauthenticatedNetwork) return
  const address = `${tcp.host}:${tcp.port}`
  const message = `the socket that systemd passes, ${address}, can be reached from the network, and hosts are not authenticated: configure auth, let it listen at 127.0.0.1, or start with --allow-unauthenticated-network`
  throw Object.assign(new Error(message), { address })
}

const addressesOf = ({ addresses, unix, inherited }: HostOptions): readonly ListenAddress[] => [
  ...addresses,
  ...inherited.map((fd) => ({ fd })),
  ...(unix === undefined ? [] : [unix]),
]

const nameOf = (address: ListenAddress): string => {
  if ('fd' in address) return `descriptor ${address.fd}`
  if ('path' in address) return address.path
  return `${address.host.includes(':') ? `[${address.host}]` : address.host}:${address.port}`
}
