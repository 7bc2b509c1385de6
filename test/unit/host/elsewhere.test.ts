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

/** What a host gets whose message was lost on the way to the replica of its HTTP+SSE stream. */
const lostOnItsWay = (body: string): Promise<{ readonly status: number; readonly headers: object; readonly text: string }> =>
  new Promise((resolve) => {
    const replicas = { isForwarded: () => false, locate: async () => OTHER, forward: async () => 'lost', looks: 0 }
    const routed = {
      request: {
        reply: (status: number, headers: object, parts: readonly Buffer[] = []) =>
          resolve({ status, headers, text: Buffer.concat(parts).toString() }),
      },
    }
    const context = {
      sessionIds: { homeOf: () => 'other' },
      options: { limits: DEFAULT_HOST_LIMITS },
      nextRef: () => 1,
      limits: { hit: () => undefined },
      hideJson: (json: string) => json,
    }
    // Casts: the members that are used.
    const elsewhere = new Elsewhere(context as unknown as ListenerContext, replicas as unknown as Replicas)
    elsewhere.routeStream(routed as unknown as RoutedRequest, Buffer.from(body), 'stream', () => undefined)
  })

test('B275 a message that was lost on its way to an HTTP+SSE stream: a status tells it, since nobody reads the body, in the form of its revision', async () => {
  const { status, text } = await lostOnItsWay(request(7, 'tools/call', { name: 'a', arguments: {} }))
  expect(status).toBe(502)
  expect(JSON.parse(text)).toEqual({
    jsonrpc: '2.0',
    id: 7,
    result: {
      content: [{ type: 'text', text: 'connection to the server was lost; outcome unknown' }],
      isError: true,
      _meta: { 'dev.trunkline/gateway': { kind: 'lost', executed: 'unknown', retryable: false, ref: '1' } },
    },
  })
  const notification = JSON.stringify({ jsonrpc: '2.0', method: 'notifications/initialized' })
  expect(await lostOnItsWay(notification)).toMatchObject({ status: 503, headers: { 'Retry-After': '1' } })
})
