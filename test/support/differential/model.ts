/** The pair, the setting and the observations that all parts of the judge share, and the comparisons they are built from. */
import type { Catalog, Curating, Endpoint } from './catalog.ts'
import { exposedUri } from './catalog.ts'
import type { Exchange, Question } from './conversation.ts'
import { readTree, valueOf } from './tree.ts'
import type { Tree } from './tree.ts'

/** Everything of a pair and its setting that a difference may depend on. */
export interface Cell {
  readonly hostEra: 'legacy' | 'modern'
  /** Of legacy hosts. */
  readonly hostRevision: string
  readonly serverEra: 'legacy' | 'modern'
  /** The server closes the stream of a request where others send a notification. */
  readonly isServerHttp: boolean
  readonly isHostHttp: boolean
  /** Of names and URIs; empty where they are the server's own. */
  readonly prefix: string
  readonly endpoint: Endpoint
  readonly catalog: Catalog
  readonly curating: Curating
}

/** One question: its `params`, and the answer as the one side wrote it or the other received it, as text. */
export interface Asked {
  readonly params: string
  /** The result, or the error. */
  readonly answer: string
}

/** A question of the server with what became of it. */
export interface ServerQuestion extends Asked {
  readonly question: Question
}

/** What happened with one exchange. */
export interface Observed {
  readonly exchange: Exchange
  /** The number that its messages carry, where they are marked. */
  readonly mark: string
  /** The server's own name or URI of what was called. */
  readonly target: string
  /** What its host declared, as far as its revision knows it: JSON. */
  readonly capabilities: string
  /** Its roots, as it answers them. */
  readonly roots: string
  /** The host's message as it was sent. */
  readonly sent: string
  /** Messages that reached the server for it, with the client capabilities that were declared to it, as text. */
  readonly received: readonly { readonly text: string; readonly declared: string }[]
  /** The answer as the server wrote it; `undefined`: it was never asked. */
  readonly answered: string | undefined
  /** What the host received for it before the answer. */
  readonly notifications: readonly string[]
  /** Whether every message for it can be told from all others, and none may be left out (3.11). */
  readonly isAlone: boolean
  readonly answer: string
  /** The id of the request that got it, as text: a retry has one of its own. */
  readonly answeredId: string
  /** What the host was asked and what it answered. */
  readonly asked: readonly Asked[]
  /** What the server asked and what it was answered. */
  readonly questions: readonly ServerQuestion[]
  /** The level that holds for its log messages; `undefined`: none was set. */
  readonly level: string | undefined
  /** `params` of the cancellation: as the host sent it, and as it reached the server, which saw its stream close instead where it is `closed`. */
  readonly cancellation: { readonly sent: string | undefined; readonly received: string | undefined } | undefined
}

/** Takes one sentence about something that is not as the model says. */
export type Say = (text: string) => void

export const PROTOCOL = 'io.modelcontextprotocol/'
export const OURS = 'dev.trunkline/'
/** Written by a gateway on each side; never relayed (2.5, B017). */
export const PER_REQUEST = ['protocolVersion', 'clientCapabilities', 'clientInfo', 'logLevel'].map((name) => PROTOCOL + name)

/** Exactly the text that was sent. */
export const same = (place: string, sent: Tree, arrived: Tree | undefined, say: Say): void => {
  if (arrived === undefined) say(`${place} was lost: ${sent.text}`)
  else if (arrived.text !== sent.text) say(`${place} was changed: ${sent.text} became ${arrived.text}`)
}

/** Every member but those named, both ways: exactly as sent, a key that is repeated stays repeated, and none beside them. */
export const sameMembers = (
  place: string,
  from: Tree | undefined,
  to: Tree | undefined,
  but: readonly string[],
  say: Say,
): void => {
  const texts = (tree: Tree | undefined, key: string): string =>
    (tree?.members ?? [])
      .filter((each) => each.key === key)
      .map(({ value }) => value.text)
      .join(' and ')
  const keys = [...(from?.members ?? []), ...(to?.members ?? [])].map(({ key }) => key)
  for (const key of new Set(keys)) {
    if (but.includes(key)) continue
    const [sent, arrived] = [texts(from, key), texts(to, key)]
    if (sent === '') say(`${place}["${key}"] was received and never sent: ${arrived}`)
    else if (arrived === '') say(`${place}["${key}"] was lost: ${sent}`)
    else if (sent !== arrived) say(`${place}["${key}"] was changed: ${sent} became ${arrived}`)
  }
}

/** Members of an object that are of no protocol and not ours. */
export const sameVendorMeta = (place: string, from: Tree | undefined, to: Tree | undefined, say: Say): void => {
  const reserved = [...(from?.members ?? []), ...(to?.members ?? [])]
    .map(({ key }) => key)
    .filter((key) => key.startsWith(PROTOCOL) || key.startsWith(OURS) || key === 'progressToken')
  sameMembers(place, from, to, reserved, say)
}

/** BRIDGING 4.4: the exposed form (B109). */
export const judgeUri = ({ prefix }: Cell, place: string, from: Tree, to: Tree | undefined, say: Say): void => {
  if (from.kind !== 'string') return same(place, from, to, say)
  const expected = exposedUri(prefix, valueOf(from) as string)
  if (valueOf(to) !== expected) say(`${place}: ${from.text} became ${to?.text} instead of ${JSON.stringify(expected)}`)
}

/** Nothing is translated: host and server of one era, with nothing between them but a bridge (3.21, B277). */
export const areAlone = ({ endpoint, hostEra, serverEra }: Cell): boolean => endpoint !== 'merged' && hostEra === serverEra

export const isBefore = (cell: Cell, revision: string): boolean => cell.hostEra === 'legacy' && cell.hostRevision < revision

export const parse = (text: string | undefined): Tree | undefined => (text === undefined ? undefined : readTree(text))
