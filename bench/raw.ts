/**
 * The baseline: a reverse proxy that passes bytes, node:http in front and undici `Pool.dispatch` behind.
 * `node bench/raw.ts http://…/mcp [json]`; with `json` it parses and serializes every body in both directions, as a simple gateway does.
 */
import { createServer, type IncomingHttpHeaders, type ServerResponse } from 'node:http'
import { Pool, type Dispatcher } from 'undici'
import { announce } from './announce.ts'

const [downstream = '', mode] = process.argv.slice(2)
const asJson = mode === 'json'
const pool = new Pool(new URL(downstream).origin)
const reprint = (body: Buffer): Buffer => (body.length === 0 ? body : Buffer.from(JSON.stringify(JSON.parse(body.toString()))))

/** Headers of one hop are not passed on; nor is the length where the body is printed anew. */
const passed = (headers: IncomingHttpHeaders): IncomingHttpHeaders => {
  const { connection: _c, host: _h, 'keep-alive': _k, 'transfer-encoding': _t, ...rest } = headers
  if (asJson) delete rest['content-length']
  return rest
}

const respond = (response: ServerResponse): Dispatcher.DispatchHandler => {
  const parts: Buffer[] = []
  return {
    onRequestStart: () => {},
    onResponseStart: (_, status, headers) => void response.writeHead(status, passed(headers)),
    onResponseData: (controller, chunk) => {
      if (asJson) parts.push(chunk)
      else if (!response.write(chunk)) {
        controller.pause()
        response.once('drain', () => controller.resume())
      }
    },
    onResponseEnd: () => void response.end(asJson ? reprint(Buffer.concat(parts)) : undefined),
    onResponseError: (_, error) =>
      void (response.headersSent ? response.destroy(error) : response.writeHead(502).end(error.message)),
  }
}

const server = createServer((request, response) => {
  const parts: Buffer[] = []
  request.on('data', (chunk: Buffer) => parts.push(chunk))
  request.on('end', () => {
    const body = Buffer.concat(parts)
    const { url: path = '/', method = 'GET', headers } = request
    const sent = body.length === 0 ? null : asJson ? reprint(body) : body
    pool.dispatch({ path, method: method, headers: passed(headers), body: sent }, respond(response))
  })
})
announce(server)
