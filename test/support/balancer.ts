/**
 * A load balancer without stickiness: each HTTP request goes to the next replica, streams included. A replica that refuses the connection
 * is left out, as proxies do; what was sent once is not sent again.
 */
import { createServer, request } from 'node:http'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { listening } from './listening.ts'

export interface Balancer extends AsyncDisposable {
  readonly url: URL
  /** Ports of the replicas, in their order. */
  targets: readonly number[]
  /** Where the next request goes: an index of `targets`. Then it goes on in turn. */
  next: number
}

export const openBalancer = async (targets: readonly number[]): Promise<Balancer> => {
  const forward = (from: IncomingMessage, to: ServerResponse, body: Buffer, first: number, tries: number): void => {
    const port = balancer.targets[(first + tries) % balancer.targets.length]
    const sent = request({ host: '127.0.0.1', port, method: from.method, path: from.url, headers: from.headers, agent: false })
    to.on('close', () => sent.destroy())
    sent.on('error', (error: NodeJS.ErrnoException) => {
      if (error.code === 'ECONNREFUSED' && tries + 1 < balancer.targets.length) return forward(from, to, body, first, tries + 1)
      if (to.headersSent) to.destroy()
      else to.writeHead(502).end()
    })
    sent.on('response', (answer) => {
      to.writeHead(answer.statusCode ?? 502, answer.headers)
      to.flushHeaders()
      answer.pipe(to)
      answer.on('close', () => !answer.complete && to.destroy())
    })
    sent.end(body)
  }
  // A connection that is closed while its host uses it would be a fault of the balancer.
  const server = createServer({ keepAliveTimeout: 0 }, (from, to) => {
    const pieces: Buffer[] = []
    from.on('data', (piece: Buffer) => pieces.push(piece))
    from.on('end', () => forward(from, to, Buffer.concat(pieces), balancer.next++, 0))
  })
  const opened = await listening(server)
  const balancer: Balancer = { ...opened, url: new URL('/mcp', opened.url), targets, next: 0 }
  return balancer
}
