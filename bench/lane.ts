/** The transport of a host's messages: one interface for all transports, so that a burst is the same over each. */
import type { OnMessage } from './http.ts'

/** Room for one call at a time. `lost` rejects when it ends before `close`. */
export interface LaneConnection {
  /** `framed` has the id; where the answer came over HTTP its head is given, else ''. */
  readonly send: (framed: string, id: number, onReply: OnMessage) => void
  readonly lost: Promise<never>
  readonly close: () => void
}

export interface Lane extends AsyncDisposable {
  /** What goes on the wire for a JSON-RPC message of ASCII. */
  frame(message: string, method: string, name: string | undefined): string
  readonly open: () => Promise<LaneConnection>
  /** Sends what has no answer. */
  tell(framed: string): Promise<void>
  /** The handshake was answered under this head of HTTP. */
  joined(head: string): void
}

/** A child process of which one host has the pipe. */
export interface Pipe {
  readonly input: NodeJS.WritableStream
  readonly output: NodeJS.ReadableStream
  /** Rejects when the process ends. */
  readonly lost: Promise<never>
}

/** Answers by id, for ways in that all calls share. Ids have nine digits. */
export class Pending {
  readonly #byId = new Map<number, OnMessage>()

  wait(id: number, onReply: OnMessage): void {
    this.#byId.set(id, onReply)
  }

  /** What nobody waits for, such as a notification, is dropped. */
  take(message: Buffer): void {
    const ends = message.toString('latin1', 0, 64) + message.toString('latin1', Math.max(0, message.length - 64))
    const id = Number(/"id":(\d{9})[,}]/.exec(ends)?.[1])
    const onReply = this.#byId.get(id)
    this.#byId.delete(id)
    onReply?.('', message)
  }
}
