/** Chains and circles of gateways (T-35). */
import { expect, test } from 'vitest'
import { gatewaysIn, hopsIn, nextHop, refuseCircle } from '../../../src/era/gateways.ts'
import { Payload } from '../../../src/wire/message/payload.ts'
import { META } from '../../../src/wire/protocol/meta.ts'

const answer = (gateways: unknown): Payload => Payload.of({ _meta: { [META.gateways]: gateways } })

test('the gateways of an answer are its names, of 64 characters and a thousand at most', () => {
  expect(gatewaysIn(answer(['a', 7, 'b', null]))).toEqual(['a', 'b'])
  expect(gatewaysIn(answer(['x'.repeat(64), 'x'.repeat(65)]))).toEqual(['x'.repeat(64)])
  expect(gatewaysIn(answer(Array.from({ length: 1_001 }, (_, at) => String(at)))).at(-1)).toBe('999')
  for (const result of [answer('a'), answer(undefined), Payload.of({}), Payload.of({ _meta: 7 })])
    expect(gatewaysIn(result)).toEqual([])
})

test('T-35 a gateway that finds itself behind a server refuses it', () => {
  expect(() => refuseCircle(['a', 'us'], 'us')).toThrow(expect.objectContaining({ kind: 'loop', facts: { executed: 'no' } }))
  expect(refuseCircle(['a'], 'us')).toBeUndefined()
})

test.each([
  [{ [META.hops]: 2 }, 2],
  [{ [META.hops]: 0 }, 0],
  [{ [META.hops]: -1 }, 0],
  [{ [META.hops]: 1.5 }, 0],
  [{ [META.hops]: '2' }, 0],
  [{}, 0],
])('a request with %j has passed %i gateways', (meta, hops) => {
  expect([hopsIn(Payload.of(meta)), hopsIn(undefined)]).toEqual([hops, 0])
})

test('T-35 a request passes three gateways before this one at most', () => {
  expect([nextHop(0), nextHop(2)]).toEqual([1, 3])
  expect(() => nextHop(3)).toThrow(expect.objectContaining({ kind: 'loop', facts: { executed: 'no' } }))
})
