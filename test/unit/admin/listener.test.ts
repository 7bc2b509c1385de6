/** When the admin listener is bound, and to what. */
import { connect } from 'node:net'
import { expect, onTestFinished, test } from 'vitest'
import { AdminCredentials } from '../../../src/admin/http/credentials.ts'
import { AdminListener } from '../../../src/admin/http/listener.ts'
import { DEFAULT_HOST } from '../../../src/host/options.ts'
import { DEFAULT_OBSERVE } from '../../../src/observe/options.ts'

const make = () => {
  // Cast: only these are read where no request is answered.
  const listener = new AdminListener(DEFAULT_OBSERVE, {
    context: { bodies: {}, limits: { hit: () => undefined }, options: DEFAULT_HOST },
    credentials: new AdminCredentials(undefined),
    changed: () => undefined,
    log: { info: () => undefined, warn: () => undefined },
  } as never)
  onTestFinished(() => listener[Symbol.asyncDispose]())
  return listener
}
const isOpen = (origin: string): Promise<boolean> =>
  new Promise((resolve) => {
    const { hostname: host, port } = new URL(origin)
    const socket = connect({ host, port: Number(port) })
    socket.once('connect', () => (socket.destroy(), resolve(true)))
    socket.once('error', () => resolve(false))
  })

test('links that are asked for at once are of one address, which is open', async () => {
  const listener = make()
  const links = await Promise.all([listener.open(), listener.open(), listener.open()])
  const origins = new Set(links.map((link) => link?.origin ?? ''))
  expect([...origins]).toEqual([listener.origin])
  expect(await isOpen(listener.origin ?? '')).toBe(true)
})
