/** Writing JSON-RPC messages around payloads that are already bytes. */
import type { Id } from './envelope.ts'
import type { Parts } from './payload.ts'

export const CLOSE = Buffer.from('}')

export const requestMessage = (id: number | string, method: string, params: Parts | undefined): Parts => {
  const head = `{"jsonrpc":"2.0","id":${id},"method":${JSON.stringify(method)}`
  return params === undefined ? [Buffer.from(`${head}}`)] : [Buffer.from(`${head},"params":`), ...params, CLOSE]
}

export const notificationMessage = (method: string, params?: Parts): Parts => {
  const head = `{"jsonrpc":"2.0","method":${JSON.stringify(method)}`
  return params === undefined ? [Buffer.from(`${head}}`)] : [Buffer.from(`${head},"params":`), ...params, CLOSE]
}

export const resultMessage = (id: Id, result: Parts): Parts => [resultHead(id), ...result, CLOSE]

/** What stands before a result that is not there yet; `CLOSE` stands behind it. */
export const resultHead = (id: Id): Buffer => Buffer.from(`{"jsonrpc":"2.0","id":${id},"result":`)

/** `id` is left out where the request's could not be read. `error` is the JSON of the error object. */
export const errorMessage = (id: Id | undefined, error: Parts): Parts => [
  Buffer.from(id === undefined ? '{"jsonrpc":"2.0","error":' : `{"jsonrpc":"2.0","id":${id},"error":`),
  ...error,
  CLOSE,
]

export const errorObject = (code: number, message: string, data?: unknown): Parts => [
  Buffer.from(JSON.stringify(data === undefined ? { code, message } : { code, message, data })),
]
