/** Which connection gives way when there are too many. */
import { EventEmitter } from 'node:events'
import type { Socket } from 'node:net'
import { expect, test } from 'vitest'
import { ConnectionCaps } from '../../../src/transport/http1/server/connection/connection-caps.ts'

const NO_LINGER = { maxUnreadBytes: 0, requestTimeoutMs: 0 }

const setUp = (limits: { all?: number; perAddress?: number } = {}) => {
  const reached: string[] = []
  const { all = 3, perAddress = 100 } = limits
  const caps = new ConnectionCaps(
    () => ({ ...NO_LINGER, maxConnections: all, maxConnectionsPerAddress: perAddress, maxConnectionsPerLoopback: Infinity }),
    (option) => reached.push(option),
  )
  const seen: string[] = []
  const socket = (name: string): Socket => {
    const emitter = Object.assign(new EventEmitter(), {
      remoteAddress: '192.0.2.1',
      writable: true,
      destroy: () => void seen.push(`${name} destroyed`),
      write: (text: string) => void seen.push(`${name} ${text.slice(9, 12)}`),
      end: () => undefined,
      resume: () => undefined,
    })
    return emitter as unknown as Socket
  }
  return { caps, socket, seen, reached }
}

test('F-29 the oldest connection without an admitted request gives way', () => {
  const { caps, socket, seen, reached } = setUp()
  const [a, b, c] = ['a', 'b', 'c'].map(socket)
  for (const one of [a, b, c]) expect(caps.admit(one!)).toBe(true)
  caps.proven(a!)
  expect(caps.admit(socket('d'))).toBe(true)
  expect(caps.admit(socket('e'))).toBe(true)
  expect(seen).toEqual(['b destroyed', 'c destroyed'])
  expect(reached).toEqual(['listen.limits.connections', 'listen.limits.connections'])
  // The end of one that gave way is not counted twice.
  b!.emit('close')
  expect(caps.admit(socket('f'))).toBe(true)
  expect(seen.at(-1)).toBe('d destroyed')
})

test('T-23 where every connection has had one a new one is answered 503; beyond sixteen at a time the oldest of those is closed', () => {
  const { caps, socket, seen } = setUp({ all: 1 })
  const first = socket('first')
  caps.admit(first)
  caps.proven(first)
  for (let at = 0; at < 20; at++) expect(caps.admit(socket(`n${at}`))).toBe(false)
  expect(seen.filter((what) => what.endsWith(' 503'))).toHaveLength(20)
  expect(seen.filter((what) => what.endsWith(' destroyed'))).toEqual(['n0', 'n1', 'n2', 'n3'].map((name) => `${name} destroyed`))
  first.emit('close')
  expect(caps.admit(socket('next'))).toBe(true)
})

test('T-23 one address does not close the connections of others', () => {
  const { caps, socket, seen } = setUp({ all: 10, perAddress: 1 })
  expect(caps.admit(socket('a'))).toBe(true)
  expect(caps.admit(socket('b'))).toBe(false)
  expect(seen).toEqual(['b 503'])
})
