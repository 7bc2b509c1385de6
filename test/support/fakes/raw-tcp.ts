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
