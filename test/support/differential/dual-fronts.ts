/** One address with a program of each era behind it: what reaches which is told by the first bytes, as a server of both eras tells it. */
import { createServer as createHttpServer, request as httpRequest } from 'node:http'
import { connect, createServer as createTcpServer } from 'node:net'
import { listening } from '../listening.ts'
import type { Listening } from '../listening.ts'

export interface Ports {
  readonly legacy: number
  readonly modern: number
}

/** Modern requests say so in a header. */
export const openHttpFront = async (ports: Ports): Promise<Listening> => {
  const server = createHttpServer((from, to) => {
    const port = from.headers['mcp-method'] === undefined ? ports.legacy : ports.modern
    const { method, url, headers } = from
    const on = httpRequest({ host: '127.0.0.1', port, method, path: url, headers }, (answer) => {
      to.writeHead(answer.statusCode ?? 500, answer.headers)
      to.flushHeaders()
      answer.pipe(to)
      answer.on('error', () => to.destroy())
    })
    on.on('error', () => to.destroy())
    to.on('close', () => on.destroy())
    from.pipe(on)
  })
  return listening(server)
}

/** A process whose first message is `initialize` is legacy; before that line comes the one with its id. */
export const openPipeFront = async (ports: Ports): Promise<Listening> => {
  const server = createTcpServer((from) => {
    let head = ''
    const onData = (chunk: Buffer): void => {
      head += chunk.toString()
      const [, first = ''] = head.split('\n', 2)
      if (head.split('\n').length < 3) return
      from.off('data', onData)
      from.pause()
      const on = connect(first.includes('"initialize"') ? ports.legacy : ports.modern, '127.0.0.1')
      on.on('error', () => undefined).on('close', () => from.destroy())
      from.on('close', () => on.destroy())
      on.write(head)
      from.pipe(on)
      on.pipe(from)
    }
    from.on('error', () => undefined).on('data', onData)
  })
  return listening(server)
}
