/** What a probe is and the words it is written in: call, see what arrived on both sides, judge. Knows nothing of `src/`. */
import type { FakeDownstream } from '../fake-downstream.ts'
import type { CallOptions, Host, Pending } from '../fake-host.ts'
import { RpcError } from '../fakes/messages.ts'
import type { JsonMap, Message } from '../fakes/messages.ts'
import type { TestGateway } from '../gateway.ts'
import { era } from './cells.ts'
import type { Cell } from './cells.ts'

/** `full`: as it was said. `projected`: all of it in another form. `impossible`: the other side got a refusal, or nothing. */
export type Verdict = 'full' | 'projected' | 'impossible'

/** Why a cell is not full, and under which rules. */
export interface Deviation {
  readonly verdict: 'projected' | 'impossible'
  readonly reason: string
  readonly rules: readonly string[]
}
export const projected = (reason: string, ...rules: string[]): Deviation => ({ verdict: 'projected', reason, rules })
export const impossible = (reason: string, ...rules: string[]): Deviation => ({ verdict: 'impossible', reason, rules })

/** `none`: who would have to begin knows nothing of the feature, so there is nothing to carry and nothing is probed. */
export type Expected = 'full' | 'none' | Deviation

export interface ProbedHost extends Cell {
  readonly host: Host
  /** What a legacy host was asked since it was last emptied. */
  readonly asked: Message[]
  /** A further connection of the same kind. */
  connect(): Promise<Host>
}

export interface ProbedServer extends Cell {
  readonly fake: FakeDownstream
  readonly extras: JsonMap[]
}

export interface Pair {
  readonly host: ProbedHost
  readonly server: ProbedServer
  readonly gateway: TestGateway
}

export interface Feature {
  readonly name: string
  /** What is done and looked at, as one sentence. */
  readonly what: string
  readonly expected: (host: Cell, server: Cell) => Expected
  /** Cannot be told apart from what others do at the same moment. */
  readonly isAlone?: true
  /** What was observed; throws if it was none of the three. */
  readonly probe: (pair: Pair) => Promise<Verdict>
}

export const crosses = (host: Cell, server: Cell): boolean => era(host) !== era(server)
export const exposed = ({ server }: Pair, name: string): string => `${server.key}__${name}`
export const exposedUri = ({ server }: Pair, uri: string): string =>
  uri.startsWith('ui://') ? `ui://~${server.key}/${uri.slice(5)}` : `${server.key}+${uri}`

export const callTool = (pair: Pair, name: string, params: JsonMap = {}, options?: CallOptions): Promise<JsonMap> =>
  pair.host.host.call('tools/call', { name: exposed(pair, name), ...params }, options)
export const beginTool = (pair: Pair, name: string, options?: CallOptions): Pending =>
  pair.host.host.begin('tools/call', { name: exposed(pair, name) }, options)

/** The first content block. */
export const blockOf = (result: JsonMap): JsonMap => ((result['content'] ?? []) as JsonMap[])[0] ?? {}
export const textOf = (result: JsonMap): string => String(blockOf(result)['text'])

/** The code of the error that this ends with. */
export const codeOf = async (call: Promise<JsonMap>): Promise<number> => {
  try {
    throw new Error(`no error but ${JSON.stringify(await call)}`)
  } catch (error) {
    if (error instanceof RpcError) return error.code
    throw error
  }
}

/** A message that belongs to a request: on its stream, or where its transport puts everything. */
export const heard = async ({ host }: Pair, pending: Pending, matches: (message: Message) => boolean): Promise<Message> =>
  Promise.race([pending.messages.until(matches), host.host.heard.until(matches)])

export const same = (a: unknown, b: unknown): boolean => JSON.stringify(a) === JSON.stringify(b)

/** `full` or `projected`, where everything has arrived; anything else is a mistake of ours. */
export const judge = (arrived: unknown, isFull: boolean, isProjected: boolean): Verdict => {
  if (isFull) return 'full'
  if (isProjected) return 'projected'
  throw new Error(`neither full nor projected: ${JSON.stringify(arrived)}`)
}
