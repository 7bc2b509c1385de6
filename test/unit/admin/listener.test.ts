/** When the admin listener is bound, and to what. */
import { connect } from 'node:net'
import { expect, onTestFinished, test } from 'vitest'
import { AdminCredentials } from '../../../src/admin/http/credentials.ts'
import { AdminListener } from '../../../src/admin/http/listener.ts'
import { DEFAULT_HOST } from '../../../src/host/options.ts'
import { DEFAULT_OBSERVE } from '../../../src/observe/options.ts'
import { freePort } from '../../support/free-port.ts'

/** `onDemand` is called with each address that is opened on demand. */
const make = (onDemand: (address: string) => void = () => undefined) => {
  // Cast: only these are read where no request is answered.
  const listener = new AdminListener(DEFAULT_OBSERVE, {
    context: { bodies: {}, limits: { hit: () => undefined }, options: DEFAULT_HOST },
    credentials: new AdminCredentials(undefined),
    changed: () => undefined,
    log: { info: ({ address }: { address: string }) => onDemand(address), warn: () => undefined },
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

test.each(['during', 'just before'])(
  'T-37 an address that is opened on demand %s a reload does not stay open beside those of the configuration',
  async (when) => {
    const opened: string[] = []
    const listener = make((address) => opened.push(address))
    const own = `http://127.0.0.1:${await freePort()}`
    const addresses = [{ host: '127.0.0.1', port: Number(new URL(own).port) }]
    const reload = () => listener.rebind({ ...DEFAULT_OBSERVE, admin: { ...DEFAULT_OBSERVE.admin, addresses } })
    await Promise.all(when === 'during' ? [reload(), listener.open()] : [listener.open(), reload()])
    expect([listener.origin, await isOpen(own)]).toEqual([own, true])
    for (const address of opened.filter((one) => one !== own)) expect(await isOpen(address)).toBe(false)
  },
)

test('links that are asked for at once are of one address, which is open', async () => {
  const listener = make()
  const links = await Promise.all([listener.open(), listener.open(), listener.open()])
  const origins = new Set(links.map((link) => link?.origin ?? ''))
  expect([...origins]).toEqual([listener.origin])
  expect(await isOpen(listener.origin ?? '')).toBe(true)
})
