import { EventEmitter } from 'node:events'
import type { Server } from 'node:net'
import { expect, test } from 'vitest'
import { SimulatedClock } from '../support/simulation/clock.ts'
import { SimulatedNetwork } from '../support/simulation/network.ts'
import { Random } from '../support/simulation/random.ts'

const PORT = 1234
const LONG_MS = 3_600_000

test.each([
  [true, ['ETIMEDOUT']],
  [false, []],
])(
  'a silent end of a connection opened with keepAlive %j finds out that nothing passes any more: %j',
  async (keepAlive, expected) => {
    const clock = new SimulatedClock()
    const network = new SimulatedNetwork(clock, new Random(1))
    // Cast: the network takes of a server only what it emits.
    network.listen(new EventEmitter() as Server, PORT)
    const socket = network.connect({ port: PORT, keepAlive })
    const codes: unknown[] = []
    socket.on('error', ({ code }: NodeJS.ErrnoException) => codes.push(code))
    await clock.pass(1_000)
    socket.stop(Infinity)
    await clock.pass(LONG_MS)
    expect(codes).toEqual(expected)
  },
)
