import { expect, test } from 'vitest'
import { BodyPool } from '../../../src/transport/body-pool.ts'

const KIB = 1024
const MIB = 1024 * KIB

test('memory of a relayed body is used again, and only after it was given back', () => {
  const pool = new BodyPool()
  const first = pool.lease(MIB)
  pool.relayed(first)
  expect(pool.lease(MIB).buffer).not.toBe(first.buffer)
  pool.release([first.subarray(10, 20), first.subarray(20)])
  expect(pool.freeBytes).toBe(MIB)
  const again = pool.lease(MIB - 1)
  expect(again.buffer).toBe(first.buffer)
  expect(again.length).toBe(MIB - 1)
  expect(pool.freeBytes).toBe(0)
})

test('what was not relayed, or was given back already, is not taken back', () => {
  const pool = new BodyPool()
  const kept = pool.lease(MIB)
  pool.release([kept])
  expect(pool.freeBytes).toBe(0)
  pool.relayed(kept)
  pool.release([kept])
  pool.release([kept])
  expect(pool.freeBytes).toBe(MIB)
  pool.release([Buffer.alloc(MIB)])
  expect(pool.freeBytes).toBe(MIB)
})

test('small bodies share the memory of other small things, huge ones are not kept', () => {
  const pool = new BodyPool()
  for (const length of [1, 64 * KIB - 1, 16 * MIB + 1]) {
    const body = pool.lease(length)
    expect(body.length).toBe(length)
    pool.relayed(body)
    pool.release([body])
    expect(pool.freeBytes).toBe(0)
  }
})

test('no more than 128 MiB wait for their next use', () => {
  const pool = new BodyPool()
  const bodies = Array.from({ length: 10 }, () => pool.lease(16 * MIB))
  for (const body of bodies) pool.relayed(body)
  pool.release(bodies)
  expect(pool.freeBytes).toBe(128 * MIB)
})

test('the body of a request is used again once it was sent, and no write of it is under way', () => {
  const pool = new BodyPool()
  const body = pool.leaseRequest(MIB)
  const [first, second] = [pool.sending([Buffer.alloc(1), body.subarray(5)]), pool.sending([body])]
  first?.()
  pool.releaseRequest(body)
  expect(pool.freeBytes).toBe(0)
  second?.()
  const again = pool.leaseRequest(MIB)
  pool.sending([again])?.()
  pool.releaseRequest(again)
  expect(pool.freeBytes).toBe(MIB)
  pool.releaseRequest(again)
  expect(pool.freeBytes).toBe(MIB)
})

test('the body of a request that was not sent, or not whole, is not used again', () => {
  const pool = new BodyPool()
  const unsent = pool.leaseRequest(MIB)
  pool.releaseRequest(unsent)
  const broken = pool.leaseRequest(MIB)
  pool.sending([broken])?.(new Error('reset'))
  pool.releaseRequest(broken)
  expect(pool.freeBytes).toBe(0)
  expect(pool.sending([Buffer.alloc(MIB), pool.lease(MIB)])).toBeUndefined()
  expect(pool.freeBytes).toBe(0)
})
