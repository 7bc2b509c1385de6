/** Streamable HTTP of a host: the session of the legacy era, the repeated envelope of the modern era. */
import { openConnection } from './connection.ts'
import { header, type OnMessage } from './http.ts'
import type { Lane } from './lane.ts'
import { type Era, REVISION } from './payload.ts'

/** The line of a head that says who the host is. */
export const authorization = (bearer: string): string => `Authorization: Bearer ${bearer}\r\n`

/** The head and body of a POST. `headers` are whole lines. */
export const post = (url: URL, bearer: string, headers: string, message: string): string =>
  `POST ${url.pathname}${url.search} HTTP/1.1\r\nHost: ${url.host}\r\nUser-Agent: bench\r\nContent-Type: application/json\r\n` +
  `Accept: application/json, text/event-stream\r\n${authorization(bearer)}${headers}Content-Length: ${message.length}\r\n\r\n${message}`

/** One exchange on a connection of its own. */
const exchange = async (url: URL, message: string, onReply: OnMessage = () => {}): Promise<void> => {
  const connection = await openConnection(url)
  try {
    const replied = new Promise<void>((resolve) =>
      connection.send(message, (head, body) => {
        onReply(head, body)
        resolve()
      }),
    )
    await Promise.race([replied, connection.lost])
  } finally {
    connection.close()
  }
}

/** Disposing it ends the session. */
export const httpLane = (url: URL, era: Era, bearer: string): Lane => {
  let session = ''

  const headers = (method: string, name: string | undefined): string => {
    if (era === 'legacy')
      return session === '' ? '' : `MCP-Protocol-Version: ${REVISION.legacy}\r\nMcp-Session-Id: ${session}\r\n`
    const nameLine = name === undefined ? '' : `Mcp-Name: ${name}\r\n`
    return `MCP-Protocol-Version: ${REVISION.modern}\r\nMcp-Method: ${method}\r\n${nameLine}`
  }

  return {
    frame: (message, method, name) => post(url, bearer, headers(method, name), message),
    open: async () => {
      const { send, lost, close } = await openConnection(url)
      return { send: (framed, _, onReply) => send(framed, onReply), lost, close }
    },
    tell: (framed) => exchange(url, framed),
    joined: (head) => {
      session = header(head, 'mcp-session-id')
    },
    async [Symbol.asyncDispose]() {
      if (session === '') return
      const head = `DELETE ${url.pathname} HTTP/1.1\r\nHost: ${url.host}\r\n${authorization(bearer)}`
      const ended = exchange(url, `${head}Mcp-Session-Id: ${session}\r\n\r\n`)
      await ended.catch(() => {}) // the other side may be gone, which whoever called has heard by then
    },
  }
}
