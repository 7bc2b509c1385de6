/** What scenarios of the bridge page need of an official SDK, whichever it is: a client and a server that speak in methods and params. */
import type { JsonMap } from '../fakes/messages.ts'
import type { Journal } from '../fakes/journal.ts'

/** An error as an SDK's user sees it. */
export interface SeenError {
  readonly code: number | string
  readonly message: string
  readonly data?: unknown
}

export type Ended = { readonly result: JsonMap } | { readonly error: SeenError }

export interface Notice {
  readonly method: string
  readonly params: JsonMap | undefined
}

export interface AskOptions {
  readonly onprogress?: (progress: JsonMap) => void
  readonly signal?: AbortSignal
}

/** The context of one request in its handler. */
export interface Turn {
  readonly params: JsonMap
  /** `_meta` of the request, without what each exchange has of its own. */
  readonly meta: JsonMap
  readonly signal: AbortSignal
  /** What a modern request says of its client. */
  readonly envelope?: JsonMap | undefined
  /** Sends a notification that belongs to this request. */
  notify(method: string, params: JsonMap): Promise<void>
  /** Reports progress under the token of the request, if there is one. */
  progress(params: JsonMap): Promise<void>
  /** Asks the other side within this request. */
  request(method: string, params: JsonMap, options?: AskOptions): Promise<Ended>
  /** Answers of an earlier round ([2026-07-28 basic/patterns/mrtr]). */
  readonly responses: JsonMap | undefined
}

export type Handle = (turn: Turn) => JsonMap | Promise<JsonMap>

/** One side's SDK object, before it is connected. */
export interface Peer {
  handle(method: string, handle: Handle): void
  on(method: string, listener: (params: JsonMap | undefined) => void): void
  /** Sends what belongs to no request. */
  notify(method: string, params?: JsonMap): Promise<void>
  request(method: string, params?: JsonMap, options?: AskOptions): Promise<Ended>
}

export interface ServerPeer extends Peer {
  /** What it knows of the client: capabilities and identity. */
  client(): { readonly capabilities: unknown; readonly info: unknown }
  readonly era: 'legacy' | 'modern'
  /** The SDK's own object. */
  readonly sdk: unknown
}

export interface ClientPeer extends Peer, AsyncDisposable {
  readonly era: 'legacy' | 'modern'
  /** Every notification that no listener of its own took. */
  readonly notices: Journal<Notice>
  /** What it knows of the server. */
  server(): { readonly info: unknown; readonly capabilities: unknown; readonly instructions: unknown; readonly version: unknown }
  /** Asks to be told of these ([2026-07-28 basic/patterns/subscriptions]); legacy clients are told unasked, but of resources. */
  follow(filter: Filter): Promise<void>
  /** The SDK's own object. */
  readonly sdk: unknown
}

export interface Filter {
  readonly lists?: readonly ('tools' | 'prompts' | 'resources')[]
  readonly uris?: readonly string[]
}

export interface Identity {
  readonly name: string
  readonly version: string
  readonly [member: string]: unknown
}

/** `_meta` without the members that every exchange has of its own. */
export const ownMeta = (meta: unknown): JsonMap =>
  Object.fromEntries(
    Object.entries((meta ?? {}) as JsonMap).filter(
      ([key]) => key !== 'progressToken' && !key.startsWith('io.modelcontextprotocol/') && !key.startsWith('dev.trunkline/'),
    ),
  )

/** How a request to an SDK ended. */
export const asked = async (ask: () => Promise<unknown>): Promise<Ended> => {
  try {
    return { result: (await ask()) as JsonMap }
  } catch (error) {
    return seenError(error)
  }
}

/** An error that an SDK threw; whatever else it throws is a defect of the test. */
const seenError = (thrown: unknown): Ended => {
  const { code, message, data } = thrown as { code?: number | string; message: string; data?: unknown }
  if (code === undefined) throw thrown
  return { error: { code, message, ...(data !== undefined && { data }) } }
}

/** Thrown by a handler: the error that the other side gets. */
export class Refused extends Error {
  readonly code: number
  readonly data: unknown

  constructor(code: number, message: string, data?: unknown) {
    super(message)
    this.code = code
    this.data = data
  }
}
