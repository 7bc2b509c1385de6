/**
 * Opens a link: detects the era of a server and does the handshake (BRIDGING 5.2). One path for pipes, one for HTTP; `open` of the
 * caller starts the process or opens the socket.
 */
import { isDeepStrictEqual } from 'node:util'
import { asError } from '../../values/as-error.ts'
import { ServerError } from '../../rpc/call.ts'
import { Connection } from '../../rpc/connection.ts'
import type { RequestIds } from '../../rpc/connection.ts'
import type { Sweeper } from '../../rpc/sweeper.ts'
import { within } from '../../time/within.ts'
import type { Channel, HttpChannel } from '../../transport/channel/channel.ts'
import { failureOfStatus } from '../../transport/http1/client/http-failure.ts'
import type { Envelope } from '../../wire/message/envelope.ts'
import { Failure } from '../../wire/message/failure.ts'
import type { FailureKind } from '../../wire/message/failure.ts'
import type { Parts } from '../../wire/message/payload.ts'
import type { Era, LegacyRevision } from '../../wire/protocol/revisions.ts'
import { discoverMessage, DISCOVER_HEADERS, readDiscover } from './discover.ts'
import type { Reading } from './discover.ts'
import { nextHop, refuseCircle } from '../gateways.ts'
import type { Position } from '../gateways.ts'
import { LegacyLink } from './legacy-link.ts'
import type { ClientDescription, Declared, Identity, Link, LinkEvents, LinkTimeouts } from './link.ts'
import { ModernLink } from './modern-link.ts'
import type { ModernServer } from './modern-link.ts'
import { withClientCredentials } from './client-credentials.ts'

/** The detected era of a server. Stored, so that the next start needs one request only. */
export interface Verdict {
  readonly era: Era
  readonly transport: 'pipe' | 'http' | 'sse'
  /** Whether a modern server accepts `initialize`, too; absent: not tried yet. */
  readonly takesInitialize?: boolean
}

export interface Dialing {
  readonly era: 'auto' | Era
  /** An earlier verdict that may still hold. */
  readonly verdict: Verdict | undefined
  /** Client capabilities to declare: those of the host of the link, or the superset of the main link. */
  readonly declared: Declared
  /** Whether the gateway authenticates with client credentials; declared to modern servers. */
  readonly usesClientCredentials: boolean
  readonly identity: Identity
  /** `clientInfo` of the only host of the link, at a bridge. */
  readonly clientInfo: unknown
  /** Revision of that host; `undefined`: the latest is requested. */
  readonly revision: LegacyRevision | undefined
  /** Position in the chain of gateways; circles and longer chains are refused (T-35). */
  readonly position: Position
  readonly timeouts: () => LinkTimeouts & { readonly probeMs: number }
  readonly sweeper: Sweeper
  /** Ids over HTTP, shared by all links: some servers (supergateway, mcp-framework) send each answer to all clients (3.22). */
  readonly httpIds: RequestIds
  /** The same for HTTP+SSE. */
  readonly sseIds: RequestIds
  readonly events: LinkEvents
}

export interface Dialed {
  readonly link: Link
  readonly verdict: Verdict
}

/** Dials over a pipe. `open` starts a process and returns a connection on which nothing was sent yet. */
export const dialPipe = async (open: () => Promise<Connection>, dialing: Dialing): Promise<Dialed> => {
  nextHop(dialing.position.hops)
  const era = dialing.era === 'auto' ? dialing.verdict?.era : dialing.era
  if (era === 'legacy') return legacy(await open(), dialing)
  const connection = await open()
  try {
    const answer = await probePipe(connection, dialing, era === undefined)
    if (answer.era === 'modern') return modern(connection, answer.server, dialing)
    if (dialing.era === 'modern') throw new Failure('version', 'the server does not speak 2026-07-28')
    return await legacy(connection, dialing, answer.handshake).catch(afterProbe)
  } catch (error) {
    await connection.channel.close()
    if (!(error instanceof Reopen)) throw error
    return error.era === 'legacy' ? legacy(await open(), dialing) : dialPipe(open, { ...dialing, era: 'modern' })
  }
}

/** The process has ended, or is bound to the wrong era: it must be started again and addressed in `era` from the first line. */
class Reopen extends Error {
  readonly era: Era
  constructor(era: Era, cause?: unknown) {
    super(`start again as ${era}`, { cause })
    this.era = era
  }
}

/** Failures of a handshake that are permanent. */
const FINAL: ReadonlySet<FailureKind> = new Set(['version', 'loop', 'shutting_down'])

/** Throws permanent failures of a handshake after a probe, else `Reopen`: some programs want `initialize` first (B294). */
const afterProbe = (error: unknown): never => {
  const isFinal = error instanceof Reopen || (error instanceof Failure && FINAL.has(error.kind))
  throw isFinal ? error : new Reopen('legacy', error)
}

type PipeAnswer =
  | { readonly era: 'modern'; readonly server: ModernServer }
  | { readonly era: 'legacy'; readonly handshake: Promise<LegacyLink> | undefined }

/** Sends `server/discover`, and if it stays unanswered `initialize`, too (`mayDouble`): a slow server reads both in order. */
const probePipe = async (connection: Connection, dialing: Dialing, mayDouble: boolean): Promise<PipeAnswer> => {
  const asked = ask(connection, dialing)
  const first = await (mayDouble ? within(dialing.timeouts().probeMs, asked) : asked)
  if (first !== undefined) return decide(first, connection, dialing)
  const link = new LegacyLink(connection, dialing.events, dialing.timeouts)
  const handshake = link.initialize(dialing.declared, clientOf(dialing), dialing.position).then(() => link)
  handshake.catch(() => undefined)
  const winner = await Promise.race([
    asked.then((message) => readDiscover(message).says),
    handshake.then(() => 'initialized' as const, afterProbe),
  ])
  if (winner === 'modern') throw new Reopen('modern')
  return { era: 'legacy', handshake }
}

const ask = (connection: Connection, dialing: Dialing): Promise<Envelope> => {
  const { startMs } = dialing.timeouts()
  return connection
    .request({
      build: (id) => ({ id, parts: discover(id, dialing), headers: DISCOVER_HEADERS }),
      read: (message) => message,
      idleMs: startMs,
      totalMs: startMs,
      limit: 'timeouts.start',
      cancel: () => undefined,
    })
    .catch((error: unknown) => {
      // Some servers exit at an unknown first line, which is an answer, too.
      const mayBeLegacy = dialing.era !== 'modern' && error instanceof Failure && error.kind === 'exited'
      throw mayBeLegacy ? new Reopen('legacy') : error
    })
}

const discover = (id: number, dialing: Omit<Dialing, 'events'>): Parts => {
  const { declared, usesClientCredentials, position } = dialing
  const capabilities = withClientCredentials(declared, usesClientCredentials)
  return discoverMessage(id, capabilities, clientOf(dialing), nextHop(position.hops))
}

const clientOf = ({ identity, clientInfo, revision }: Omit<Dialing, 'events'>): ClientDescription =>
  clientInfo === undefined ? { identity, revision } : { identity: clientInfo, via: identity, revision }

const decide = async (message: Envelope, connection: Connection, dialing: Dialing): Promise<PipeAnswer> => {
  let reading: Reading = readDiscover(message)
  if (reading.says === 'again') reading = readDiscover(await ask(connection, dialing))
  if (reading.says === 'modern') return { era: 'modern', server: reading.server }
  if (reading.says === 'legacy') return { era: 'legacy', handshake: undefined }
  throw reading.says === 'again' ? refusedTwice() : noCommonVersion(reading)
}

/**
 * Dials over HTTP: modern, else legacy Streamable HTTP, else HTTP+SSE. Authorization errors and outages are thrown, not tried further. A
 * probe that is answered with 500 is an outage, too, unless the server takes `initialize`, which decides the era (B214).
 */
export const dialHttp = async (
  open: { readonly http: () => HttpChannel; readonly sse: () => Channel },
  transport: 'auto' | 'http' | 'sse',
  dialing: Dialing,
): Promise<Dialed> => {
  const known = dialing.era === 'auto' && transport === 'auto' ? dialing.verdict : undefined
  if (transport === 'sse' || known?.transport === 'sse') return overChannel(open.sse(), dialing, dialing.sseIds)
  const channel = open.http()
  const connection = new Connection(channel, dialing.sweeper, dialing.httpIds)
  await connection.open()
  const attempts: string[] = []
  let asked = 'server/discover'
  let broken: Failure | undefined
  try {
    if (dialing.era !== 'legacy' && known?.era !== 'legacy') {
      const server = await probeHttp(channel, dialing, attempts).catch((error: unknown) => {
        // Stateless servers on the SDK of Java answer so to any method that they do not know.
        const mayBeLegacy =
          dialing.era === 'auto' && known === undefined && error instanceof Failure && error.facts.status === 500
        if (!mayBeLegacy) throw error
        broken = error
      })
      if (server !== undefined) return modern(connection, server, dialing)
      if (dialing.era === 'modern') throw new Failure('version', `the server does not speak 2026-07-28 (${attempts.join('; ')})`)
    }
    asked = 'initialize'
    return await legacy(connection, dialing)
  } catch (error) {
    await channel.close()
    const dialed = error instanceof ServerError ? await dialAgain(open.http, dialing, error, attempts.length > 0) : undefined
    if (dialed !== undefined) return dialed
    if (broken !== undefined) throw broken
    if (transport === 'http' || !mayBeOlder(error)) throw error
    attempts.push(`${asked}: ${asError(error).message}`)
  }
  try {
    return await overChannel(open.sse(), dialing, dialing.sseIds)
  } catch (error) {
    attempts.push(`HTTP+SSE: ${asError(error).message}`)
    throw new Failure('not_found', `no MCP endpoint: ${attempts.join('; ')}`, { executed: 'no' }, error)
  }
}

/** After a refused `initialize`: perhaps because of the probe before it (B294), or of capabilities that the server does not know. */
const dialAgain = async (
  open: () => HttpChannel,
  dialing: Dialing,
  refusal: ServerError,
  wasProbed: boolean,
): Promise<Dialed | undefined> => {
  const others = [...(wasProbed ? [dialing] : []), ...(NOT_READ.has(refusal.code) ? declaringLess(dialing) : [])]
  for (const other of others) {
    const dialed = await overChannel(open(), other, dialing.httpIds).catch(() => undefined)
    if (dialed !== undefined) return dialed
  }
  return undefined
}

/** Codes with which a server refuses a request that it could not read. */
const NOT_READ: ReadonlySet<number> = new Set([-32602, -32603])

/** With the capabilities of 2025-06-18 only; empty if `dialing` declares no others. Servers on the SDK of Java before 1.0 may refuse the rest. */
const declaringLess = (dialing: Dialing): readonly Dialing[] => {
  const { elicitation, sampling, roots, experimental } = dialing.declared
  const declared = {
    ...(elicitation !== undefined && { elicitation: {} }),
    ...(sampling !== undefined && { sampling: {} }),
    ...(roots !== undefined && { roots }),
    ...(experimental !== undefined && { experimental }),
  }
  return isDeepStrictEqual(declared, dialing.declared) ? [] : [{ ...dialing, declared }]
}

/** Detects the era of the server at a URL by one `server/discover`. Throws if the answer does not decide. */
export const probeEra = async (channel: HttpChannel, dialing: Omit<Dialing, 'events'>): Promise<Era> =>
  (await probeHttp(channel, dialing, [])) === undefined ? 'legacy' : 'modern'

const probeHttp = async (
  channel: HttpChannel,
  dialing: Omit<Dialing, 'events'>,
  attempts: string[],
): Promise<ModernServer | undefined> => {
  for (let attempt = 0; attempt < 2; attempt++) {
    const parts = discover(0, dialing)
    const { status, headers, message, body } = await channel.exchange(
      { parts, headers: DISCOVER_HEADERS },
      dialing.timeouts().startMs,
    )
    if (status === 401 || status === 403) throw failureOfStatus({ status, headers }, false, Date.now(), body)
    if (status === 408 || status === 425 || status === 429 || status >= 500) {
      const { message: text, facts } = failureOfStatus({ status, headers }, false, Date.now(), body)
      throw new Failure('downstream_error', text, { ...facts, executed: 'no', retryable: true })
    }
    const reading: Reading = message === undefined ? { says: 'legacy' } : readDiscover(message)
    if (reading.says === 'modern') return reading.server
    if (reading.says === 'no common version') throw noCommonVersion(reading)
    attempts.push(`server/discover: HTTP ${status}`)
    if (reading.says === 'legacy') return undefined
  }
  throw refusedTwice()
}

/** Whether a refused `initialize` may mean HTTP+SSE ([2025-11-25 basic/transports], Backwards Compatibility). */
const mayBeOlder = (error: unknown): boolean =>
  error instanceof ServerError || (error instanceof Failure && (error.kind === 'bad_response' || error.kind === 'not_found'))

/** A legacy handshake on a channel of its own. */
const overChannel = async (channel: Channel, dialing: Dialing, ids: RequestIds): Promise<Dialed> => {
  const connection = new Connection(channel, dialing.sweeper, ids)
  try {
    await connection.open()
    return await legacy(connection, dialing)
  } catch (error) {
    await channel.close()
    throw error
  }
}

const legacy = async (connection: Connection, dialing: Dialing, handshake?: Promise<LegacyLink>): Promise<Dialed> => {
  const verdict: Verdict = { era: 'legacy', transport: connection.channel.kind }
  if (handshake !== undefined) return { link: await handshake, verdict }
  const link = new LegacyLink(connection, dialing.events, dialing.timeouts)
  try {
    await link.initialize(dialing.declared, clientOf(dialing), dialing.position)
  } catch (error) {
    if (connection.channel.kind === 'pipe') await connection.channel.close()
    throw error
  }
  return { link, verdict }
}

const modern = (connection: Connection, server: ModernServer, dialing: Dialing): Dialed => {
  const { events, timeouts, position } = dialing
  refuseCircle(server.gateways, position.instance)
  const link = new ModernLink(connection, server, dialing, events, timeouts)
  link.listen()
  return { link, verdict: { era: 'modern', transport: connection.channel.kind } }
}

const noCommonVersion = (reading: { readonly offered: readonly string[] }): Failure =>
  new Failure('version', `no common protocol version; the server offers ${reading.offered.join(', ') || 'none'}`, {
    executed: 'no',
  })

const refusedTwice = (): Failure => new Failure('protocol', 'the server refused server/discover twice', { executed: 'no' })
