/** How a test server process and the test that started it find each other. */
import type { AddressInfo, Server } from 'node:net'

/** Listens on loopback and says on stderr, in one line, at which URL; port 0 takes a free one. */
export const announce = (server: Server, port: number, path: string): void => {
  server.listen(port, '127.0.0.1', () => {
    process.stderr.write(`listening http://127.0.0.1:${(server.address() as AddressInfo).port}${path}\n`)
  })
}
