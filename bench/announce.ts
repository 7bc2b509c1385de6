/** Announces that a process of the benchmark is up: one line on stderr with its MCP URL, as the gateway writes it. */
import type { AddressInfo, Server } from 'node:net'

export const announce = (server: Server): void => {
  server.listen(0, '127.0.0.1', () => console.error(`http://127.0.0.1:${(server.address() as AddressInfo).port}/mcp`))
}
