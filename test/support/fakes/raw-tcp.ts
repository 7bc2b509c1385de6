/** HTTP as bytes on a socket: what no client library would send. */
import { connect } from 'node:net'

/** Sends `text` (latin1) and resolves with all that came back until the gateway closed the connection. */
export const exchangeRaw = (url: URL, text: string): Promise<string> =>
  new Promise((resolve) => {
    const chunks: Buffer[] = []
    const socket = connect(Number(url.port), url.hostname)
    socket.on('data', (chunk: Buffer) => chunks.push(chunk))
    // A reset is one way to be refused.
    socket.on('error', () => undefined)
    socket.on('close', () => resolve(Buffer.concat(chunks).toString('latin1')))
    socket.write(text, 'latin1')
  })

/** The status codes of the answers in what came back. */
export const statuses = (text: string): number[] => [...text.matchAll(/^HTTP\/1\.1 (\d{3}) /gm)].map(([, code]) => Number(code))

/** Sends each on one connection when the one before was answered; the status codes of the answers. */
export const inTurn = async (url: URL, texts: readonly string[]): Promise<number[]> => {
  const socket = connect(Number(url.port), url.hostname)
  const found: number[] = []
  for (const text of texts) {
    const { promise, resolve } = Promise.withResolvers<string>()
    socket.once('data', (chunk: Buffer) => resolve(chunk.toString('latin1')))
    socket.once('close', () => resolve(''))
    socket.write(text, 'latin1')
    found.push(...statuses(await promise))
  }
  socket.destroy()
  return found
}
