/** A connection to a server that a test plays, and what is told of that server. */
import { onTestFinished } from 'vitest'
import type { LinkEvents } from '../../../src/era/server/link.ts'
import { Connection } from '../../../src/rpc/connection.ts'
import { Sweeper } from '../../../src/rpc/sweeper.ts'
import type { Channel, ChannelEvents } from '../../../src/transport/channel/channel.ts'
import { readServerMessage } from '../../../src/wire/message/envelope.ts'
import { Payload } from '../../../src/wire/message/payload.ts'

/** A message as the server received it. */
export interface Sent {
  readonly id?: number
  readonly method: string
  readonly params?: Readonly<Record<string, unknown>>
}
/** The members `result` or `error` of the answer to a request; `undefined`: there is none. */
export type Server = (message: Sent) => object | undefined

const EVENTS = [
  'listChanged',
  'updated',
  'taskChanged',
  'message',
  'vendor',
  'elicitationComplete',
  'violation',
  'refused',
] as const

export const serveConnection = async (server: Server, kind: Channel['kind'] = 'pipe') => {
  const sent: Sent[] = []
  const headers: (Readonly<Record<string, string>> | undefined)[] = []
  let events: ChannelEvents | undefined
  const receive = (message: object): void =>
    events?.receive(readServerMessage(Buffer.from(JSON.stringify({ jsonrpc: '2.0', ...message }))))
  const channel: Channel = {
    kind,
    open: (given) => Promise.resolve(void (events = given)),
    send: ({ parts, headers: mirrored }) => {
      const message = JSON.parse(Buffer.concat([parts].flat(2)).toString()) as Sent
      sent.push(message)
      headers.push(mirrored)
      const isRequest = message.id !== undefined && 'method' in message
      const answer = isRequest ? server(message) : undefined
      if (answer !== undefined) queueMicrotask(() => receive({ id: message.id, ...answer }))
      return true
    },
    abandon: () => undefined,
    closed: new Promise(() => undefined),
    close: () => Promise.resolve(),
  }
  const sweeper = new Sweeper()
  onTestFinished(() => sweeper[Symbol.dispose]())
  const connection = new Connection(channel, sweeper)
  await connection.open()
  /** The events in order, each with its arguments. */
  const told: unknown[] = []
  const tell =
    (name: string) =>
    (...args: readonly unknown[]): void =>
      void told.push([name, ...args.map((arg) => (arg instanceof Payload ? 'params' : arg))])
  // Cast: every function of the interface is there.
  const handlers = {
    ...Object.fromEntries(EVENTS.map((name) => [name, tell(name)])),
    ask: () => new Promise(() => undefined),
  } as unknown as LinkEvents
  return { connection, handlers, sent, headers, told, receive }
}
