/** An HTTP proxy as a company has one: CONNECT and absolute URLs, with or without a password. Every name it is asked for is this machine. */
import { createServer, request as send } from 'node:http'
import type { IncomingMessage } from 'node:http'
import { connect } from 'node:net'
import type { Socket } from 'node:net'
import { Journal } from './journal.ts'
import { listening } from '../listening.ts'

export interface Proxied {
  readonly method: string
  /** `host:port` of a CONNECT, else a URL. */
  readonly target: string
  readonly authorization: string | undefined
}

export interface HttpProxy extends AsyncDisposable {
  readonly url: string
  readonly port: number
  readonly seen: Journal<Proxied>
}

/** `password`: `user:password`, without which it answers 407; `isSilent`: it never answers a CONNECT. */
export const openHttpProxy = async (options: { password?: string; isSilent?: boolean } = {}): Promise<HttpProxy> => {
  const seen = new Journal<Proxied>()
  const expected = options.password && `Basic ${Buffer.from(options.password).toString('base64')}`
  const isAdmitted = ({ method = '', url = '', headers }: IncomingMessage): boolean => {
    const authorization = headers['proxy-authorization']
    seen.push({ method, target: url, authorization })
    return expected === undefined || authorization === expected
  }
  const server = createServer((request, response) => {
    if (!isAdmitted(request)) return void response.writeHead(407, { 'proxy-authenticate': 'Basic realm="x"' }).end('who are you')
    const { port, pathname, search } = new URL(request.url ?? '')
    const { 'proxy-authorization': _, 'proxy-connection': __, ...headers } = request.headers
    const onward = send({ host: '127.0.0.1', port, path: pathname + search, method: request.method, headers }, (answer) => {
      response.writeHead(answer.statusCode ?? 500, answer.headers)
      answer.pipe(response)
    })
    onward.on('error', () => response.destroy())
    response.on('close', () => onward.destroy())
    request.pipe(onward)
  })
  server.on('connection', (socket) => void socket.on('error', () => undefined))
  server.on('connect', (request: IncomingMessage, client: Socket, early: Buffer) => {
    if (!isAdmitted(request)) return void client.end('HTTP/1.1 407 Proxy Authentication Required\r\ncontent-length: 0\r\n\r\n')
    if (options.isSilent === true) return
    const onward = connect(Number(request.url?.split(':').pop()), '127.0.0.1', () => {
      client.write('HTTP/1.1 200 Connection established\r\n\r\n')
      onward.write(early)
      onward.pipe(client).pipe(onward)
    })
    onward.on('error', () => client.destroy())
    client.on('close', () => onward.destroy())
    onward.on('close', () => client.destroy())
  })
  return { ...(await listening(server)), seen }
}
