/**
 * The time that one message blocks the event loop: lines and events of 15 MB arrive in pieces, as many per turn as Node reads from a pipe, and
 * the longest turn counts. It runs in this process. The CPU time of one thread is exact to a tick of 4 ms only, so a turn counts as long as it
 * lasts by the clock, or as the CPU time of the process, whichever is less.
 */
import { SseDecoder, type SseEvent } from '../src/wire/framing/sse.ts'
import { readIncoming } from '../src/transport/channel/incoming.ts'
import { PipeReader } from '../src/transport/pipe/pipe-reader.ts'
import { BodyPool } from '../src/transport/body-pool.ts'
import type { Deadline } from './budget.ts'
import type { Stage } from './field.ts'
import { type Effort, figure, type Figure } from './figures.ts'
import { payloadOf } from './payload-kinds.ts'
import type { Subject } from './subjects.ts'

export const SECTION = 'longest turn of the event loop'
const BYTES = 15 * 1024 * 1024
const PIECE = 65_536
/** libuv reads at most so often from one pipe before it turns to others. */
const READS = 32

const HEAD = '{"result":{"content":['
const TAIL = '],"isError":false},"jsonrpc":"2.0","id":1}'
const text = (payload: Buffer, members: Buffer = Buffer.alloc(0)): Buffer =>
  Buffer.concat([Buffer.from(`${HEAD}{"type":"text","text":"`), payload, Buffer.from('"}]'), members, Buffer.from(TAIL.slice(1))])

/** What a message holds. */
const MESSAGES: Readonly<Record<string, (bytes: number) => Buffer>> = {
  'dense text': (bytes) => text(payloadOf('dense', bytes, 0).text),
  'Kubernetes text': (bytes) => text(payloadOf('k8s', bytes, 0).text),
  'small objects': (bytes) => text(Buffer.alloc(0), payloadOf('objects', bytes, 0).members),
  'small content blocks': (bytes) => {
    const block = '{"type":"text","text":"a line of output"},'
    return Buffer.from(`${HEAD}${block.repeat(Math.floor(bytes / block.length)).slice(0, -1)}${TAIL}`)
  },
}

/** Takes the pieces of a message that ends in a way of its own. */
type Take = (piece: Buffer) => void

const WAYS: Readonly<Record<string, readonly [before: string, behind: string, open: (received: () => void) => Take]>> = {
  line: [
    '',
    '\n',
    (received) => {
      const events = { receive: received, lost: () => undefined, unparsable: () => undefined }
      const reader = new PipeReader(events, { maxMessageBytes: 16 * 1024 * 1024, unclaimedMs: 1 }, new BodyPool())
      return (piece) => reader.push(piece)
    },
  ],
  event: [
    'data: ',
    '\n\n',
    (received) => {
      const onEvent = ({ data, ahead }: SseEvent) => readIncoming(data, { receive: received, refuse: () => undefined }, ahead)
      const decoder = new SseDecoder({
        maxEventBytes: 16 * 1024 * 1024,
        memory: new BodyPool(),
        onEvent,
        onOversize: () => undefined,
      })
      return (piece) => decoder.push(piece)
    },
  ],
}

/** Of the longest turn, ms. */
const longest = (message: Buffer, take: Take): number => {
  let most = 0
  for (let at = 0; at < message.length;) {
    const [before, began] = [process.cpuUsage(), performance.now()]
    for (let reads = 0; reads < READS && at < message.length; reads++, at += PIECE) take(message.subarray(at, at + PIECE))
    const [lasted, { user, system }] = [performance.now() - began, process.cpuUsage(before)]
    most = Math.max(most, Math.min(lasted, (user + system) / 1e3))
  }
  return most
}

export const turns = async (
  _stage: Stage,
  subjects: readonly Subject[],
  effort: Effort,
  _deadline: Deadline,
): Promise<readonly Figure[]> => {
  if (!subjects.some(({ name }) => name === 'trunkline')) return []
  const bytes = effort.warmUp === 0 ? 4 * PIECE : BYTES
  return Object.entries(WAYS).flatMap(([way, [before, behind, open]]) =>
    Object.entries(MESSAGES).map(([what, make]) => {
      const message = Buffer.concat([Buffer.from(before), make(bytes), Buffer.from(behind)])
      let received = 0
      const take = open(() => received++)
      const found: number[] = []
      for (let round = -effort.warmUp; round < effort.rounds; round++) {
        const ms = longest(message, take)
        if (round >= 0) found.push(ms)
      }
      if (received !== effort.warmUp + effort.rounds) throw new Error(`${received} ${way}s of ${what} were read`)
      return figure(SECTION, 'trunkline', `${way} of 15 MB, ${what}`, 'ms', found)
    }),
  )
}
