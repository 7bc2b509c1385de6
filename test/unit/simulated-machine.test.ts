/** What the machine of a simulation takes away of Node's own clock and random numbers. */
import http from 'node:http'
import { expect, test } from 'vitest'
import { DEFAULT_RECONNECT } from '../../src/transport/channel/reconnect.ts'
import { installMachine } from '../support/simulation/builtins.ts'

test('node:http looks for late requests by real time, and does not, also where a server does not listen', () => {
  using _machine = installMachine(1)
  const server = http.createServer({ headersTimeout: 10_000, requestTimeout: 60_000 })
  expect([server.headersTimeout, server.requestTimeout]).toEqual([0, 0])
})

test('the delay before a stream is opened again is drawn from the random numbers of the seed', () => {
  const drawn = (seed: number): number => {
    using _machine = installMachine(seed)
    return DEFAULT_RECONNECT.random()
  }
  expect(drawn(1)).toBe(drawn(1))
  expect(drawn(2)).not.toBe(drawn(1))
})
