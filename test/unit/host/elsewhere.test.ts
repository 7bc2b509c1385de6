/** A request of a session that is at this process, whose lease has ended: what may happen while it waits (decision 0172). */
import { expect, test } from 'vitest'
import { Elsewhere } from '../../../src/host/http/mcp/elsewhere.ts'
import { DEFAULT_HOST_LIMITS } from '../../../src/host/options.ts'
import type { RoutedRequest } from '../../../src/host/http/mcp/routed-request.ts'
import type { ListenerContext } from '../../../src/host/listener-context.ts'
import type { Home } from '../../../src/replicas/home.ts'
import type { Replicas } from '../../../src/replicas/replicas.ts'
import { KEY, MODERN, request } from '../../support/fakes/messages.ts'

const OTHER: Home = { instance: 'other', url: 'http://127.0.0.1:1' }

/** Who has the session in the end, and what is found of it before. */
interface Place {
  isHere: boolean
  locations: (Home | undefined)[]
  looks: number
  /** While the request waits for the lease. */
  onWait: () => void
}

/** Where a request ends: `served` here, or the instance that it was passed on to. */
const placeOf = (place: Place, body?: string): Promise<string> =>
  new Promise((resolve) => {
    const replicas = {
      isLeased: false,
      get looks() {
        return place.looks
      },
      isForwarded: () => false,
      locate: async () => place.locations.shift(),
      mayServe: async () => {
        place.onWait()
        return true
      },
      forward: async (_request: unknown, _body: unknown, to: Home) => {
        resolve(to.instance)
        return 'answered'
      },
    }
    const sessionIds = { homeOf: () => 'self', hasEnded: () => false, learn: async () => undefined, restored: () => undefined }
    // Casts: the members that are used.
    const elsewhere = new Elsewhere(
      { sessionIds, options: { limits: DEFAULT_HOST_LIMITS } } as unknown as ListenerContext,
      replicas as unknown as Replicas,
    )
    const entrance = { request: {} } as unknown as RoutedRequest
    elsewhere.route(
      entrance,
      body === undefined ? undefined : Buffer.from(body),
      'session',
      () => place.isHere,
      () => resolve('served'),
    )
  })

test('F-28 a session that is let go of while its request waits is looked for again', async () => {
  const place: Place = { isHere: true, locations: [OTHER], looks: 0, onWait: () => (place.isHere = false) }
  expect(await placeOf(place)).toBe('other')
})

test('F-28 a session that is not here, and that others may have taken while its request waited, is looked for again', async () => {
  const place: Place = { isHere: false, locations: [undefined, OTHER], looks: 0, onWait: () => place.looks++ }
  expect(await placeOf(place)).toBe('other')
})

test('F-28 a session that stays is served here', async () => {
  for (const isHere of [true, false])
    expect(await placeOf({ isHere, locations: [undefined], looks: 0, onWait: () => undefined })).toBe('served')
})

test.each([
  ['initialize opens another one', request(1, 'initialize', { protocolVersion: '2025-11-25', capabilities: {} }), 'served'],
  ['a modern request has none', request(1, 'tools/list', { _meta: { [KEY.version]: MODERN } }), 'served'],
  ['a legacy request is of it', request(1, 'tools/call', { name: 'initialize', arguments: { [KEY.version]: MODERN } }), 'other'],
])('B201 where the header names a session at another replica: %s', async (_, body, place) => {
  expect(await placeOf({ isHere: false, locations: [OTHER], looks: 0, onWait: () => undefined }, body)).toBe(place)
})
