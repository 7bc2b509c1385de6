/**
 * A port for a program that takes no 0. It lies below the range from which systems take the ports of outgoing connections: between the
 * check here and the start of the program no connection of another test can take it. No port is given twice.
 */
import { randomInt } from 'node:crypto'
import { once } from 'node:events'
import { createServer } from 'node:net'

const RANGE = [20_000, 32_000] as const

const given = new Set<number>()

export const freePort = async (): Promise<number> => {
  for (;;) {
    const port = randomInt(...RANGE)
    if (given.has(port)) continue
    given.add(port)
    const server = createServer().listen(port, '127.0.0.1')
    const isFree = await once(server, 'listening').then(
      () => true,
      () => false,
    )
    if (!isFree) continue
    server.close()
    await once(server, 'close')
    return port
  }
}
