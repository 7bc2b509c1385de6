/** What a scenario of the bridge page is, and the helpers they share. */
import type { JsonMap } from '../fakes/messages.ts'
import type { Ended, Handle, ServerPeer } from './peers.ts'
import type { Row } from './rows.ts'
import type { Scene, Setup } from './wires.ts'

export interface Scenario extends Setup {
  /** A sentence: what is the same. */
  readonly name: string
  /** Where it can be played at all; everywhere by default. */
  readonly on?: (row: Row) => boolean
  /** Everything that the users of both SDKs can see. */
  readonly play: (scene: Scene) => Promise<unknown>
  /** What differs through the bridge, and why; `on`: where. */
  readonly differs?: readonly Difference[]
}

export interface Difference {
  readonly on: (row: Row) => boolean
  /** What is different, and the reason, in one sentence each. */
  readonly what: string
  readonly why: string
  /** Takes away what may differ; both sides must be equal afterwards. */
  readonly without: (seen: unknown) => unknown
}

export const isLegacy = ({ era }: Row): boolean => era === 'legacy'
export const isModern = ({ era }: Row): boolean => era === 'modern'
export const isLatest = ({ revision }: Row): boolean => revision === '2025-11-25'
/** Host and server on pipes, or the bridge's host is: list changes need no stream of their own. */
export const isHttp = ({ host }: Row): boolean => host === 'http' || host === 'sole'

export const OBJECT = { type: 'object' } as const
export const text = (value: string): JsonMap => ({ content: [{ type: 'text', text: value }] })
export const tool = (name: string, more: JsonMap = {}): JsonMap => ({ name, inputSchema: OBJECT, ...more })

/** Without what every gateway may add: its place in `_meta` of results. */
export const seenEnd = (end: Ended): unknown => {
  if ('error' in end) return end
  const { _meta, ...rest } = end.result
  const kept = Object.entries((_meta ?? {}) as JsonMap).filter(([key]) => !key.startsWith('dev.trunkline/'))
  return kept.length === 0 ? rest : { ...rest, _meta: Object.fromEntries(kept) }
}

/** The results of one request after another. */
export const each = async (
  { client }: Pick<Scene, 'client'>,
  ...requests: readonly (readonly [method: string, params?: JsonMap])[]
): Promise<unknown[]> => {
  const seen: unknown[] = []
  for (const [method, params] of requests) seen.push(seenEnd(await client.request(method, params)))
  return seen
}

export const call = async ({ client }: Pick<Scene, 'client'>, name: string, args?: JsonMap): Promise<unknown> =>
  seenEnd(await client.request('tools/call', { name, ...(args && { arguments: args }) }))

/** A server whose tools are these, each with what it does. */
export const tools =
  (handlers: Readonly<Record<string, Handle>>, definitions = Object.keys(handlers).map((name) => tool(name))) =>
  (server: ServerPeer): void => {
    server.handle('tools/list', () => ({ tools: definitions }))
    server.handle('tools/call', (turn) => handlers[turn.params['name'] as string]!(turn))
  }

/** Asks the client in the middle of a request, in the way of the era; `finish` gets the result, or the error. */
export const asking =
  (server: ServerPeer, method: string, params: JsonMap, finish: (answer: unknown) => JsonMap): Handle =>
  async (turn) => {
    if (server.era === 'legacy') return finish(seenEnd(await turn.request(method, params)))
    const answer = turn.responses?.['asked']
    return answer === undefined
      ? { resultType: 'input_required', inputRequests: { asked: { method, params } } }
      : finish({ result: answer })
  }

/** What a handler saw, as the result of its tool. */
export const shown = (value: unknown): JsonMap => text(JSON.stringify(value ?? null))
