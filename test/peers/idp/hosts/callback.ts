/** Where the browser comes back to its host: a listener on a loopback address, on a port that the system chooses. */
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'

export interface Callback extends AsyncDisposable {
  readonly redirect: string
  /** Resolves with the URL that the browser came back to. */
  readonly returned: Promise<URL>
}

export const awaitCode = async (): Promise<Callback> => {
  const returned = Promise.withResolvers<URL>()
  const server = createServer((request, response) => {
    const url = new URL(request.url ?? '/', 'http://127.0.0.1')
    if (url.pathname === '/callback') returned.resolve(url)
    response.end('back at the host')
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const close = async (): Promise<void> => {
    server.closeAllConnections()
    await new Promise((resolve) => server.close(resolve))
  }
  const redirect = `http://127.0.0.1:${(server.address() as AddressInfo).port}/callback`
  return { redirect, returned: returned.promise, [Symbol.asyncDispose]: close }
}
