/** Records what a channel reports, so that a test can wait for it. */
import type { Channel, ChannelEvents } from '../../src/transport/channel/channel.ts'
import type { Envelope } from '../../src/wire/message/envelope.ts'
import type { Failure } from '../../src/wire/message/failure.ts'

export interface Recorded {
  readonly messages: Envelope[]
  readonly lost: { id: number; failure: Failure }[]
  readonly unparsable: { reason: string; sample: string }[]
  /** The ids answered or lost, in order. */
  readonly settled: number[]
  /** Sends a request and waits until it is answered (its result) or lost (throws). */
  call(method: string, params?: object): Promise<Record<string, unknown>>
  /** Resolves when `test` holds; looked at after every event. */
  until(test: () => boolean): Promise<void>
}

export const record = async (channel: Channel): Promise<Recorded> => {
  const watchers = new Set<() => void>()
  const changed = (): void => watchers.forEach((watch) => watch())
  const recorded: Recorded = {
    messages: [],
    lost: [],
    unparsable: [],
    settled: [],
    until: (test) =>
      new Promise((resolve) => {
        const watch = (): void => {
          if (!test()) return
          watchers.delete(watch)
          resolve()
        }
        watchers.add(watch)
        watch()
      }),
    call: async (method, params = {}) => {
      const id = next++
      channel.send({ parts: request(id, method, params), id })
      await recorded.until(() => recorded.settled.includes(id))
      const lost = recorded.lost.find((entry) => entry.id === id)
      if (lost !== undefined) throw lost.failure
      const answer = recorded.messages.find((message) => message.kind === 'response' && message.id === String(id))
      return (JSON.parse(String(answer?.bytes)) as { result: Record<string, unknown> }).result
    },
  }
  let next = 1
  const events: ChannelEvents = {
    receive(message) {
      recorded.messages.push(message)
      if (message.kind === 'response') recorded.settled.push(Number(message.id))
      changed()
    },
    lost(id, failure) {
      recorded.lost.push({ id, failure })
      recorded.settled.push(id)
      changed()
    },
    unparsable(reason, sample) {
      recorded.unparsable.push({ reason, sample })
      changed()
    },
  }
  await channel.open(events)
  return recorded
}

export const request = (id: number, method: string, params: object = {}): Uint8Array[] => [
  Buffer.from(JSON.stringify({ jsonrpc: '2.0', id, method, params })),
]
