/** Writes JSON-RPC messages around payloads that are already bytes. */
import type { Id } from './envelope.ts'
import { METHODS } from '../protocol/methods.ts'
import type { Parts } from './payload.ts'

export const CLOSE = Buffer.from('}')
/** The result of a ping. */
export const PONG: Parts = [Buffer.from('{}')]
const ID = Buffer.from('{"jsonrpc":"2.0","id":')
const RESULT = Buffer.from(',"result":')

const middleOf = (method: string): Buffer => Buffer.from(`,"method":${JSON.stringify(method)},"params":`)
/** The text between the id and the params of a request, by method. */
const MIDDLES: ReadonlyMap<string, Buffer> = new Map(Object.keys(METHODS).map((method) => [method, middleOf(method)]))

export const requestMessage = (id: number | string, method: string, params: Parts | undefined): Parts => {
  if (params === undefined) return [Buffer.from(`{"jsonrpc":"2.0","id":${id},"method":${JSON.stringify(method)}}`)]
  return [around(ID, String(id), MIDDLES.get(method) ?? middleOf(method)), ...params, CLOSE]
}

export const notificationMessage = (method: string, params?: Parts): Parts => {
  const head = `{"jsonrpc":"2.0","method":${JSON.stringify(method)}`
  return params === undefined ? [Buffer.from(`${head}}`)] : [Buffer.from(`${head},"params":`), ...params, CLOSE]
}

export const resultMessage = (id: Id, result: Parts): Parts => [resultHead(id), ...result, CLOSE]

/** The text before a result that is written later; `CLOSE` is the text behind it. */
export const resultHead = (id: Id): Buffer => around(ID, id, RESULT)

/** `id`: `undefined` if that of the request could not be read: it is written as null ([JSON-RPC 2.0, 5]). `error`: the error object. */
export const errorMessage = (id: Id | undefined, error: Parts): Parts => [
  Buffer.from(`{"jsonrpc":"2.0","id":${id ?? 'null'},"error":`),
  ...error,
  CLOSE,
]

export const errorObject = (code: number, message: string, data?: unknown): Parts => [
  Buffer.from(JSON.stringify(data === undefined ? { code, message } : { code, message, data })),
]

/** The answer to a message that is refused before it is served. */
export const refusalMessage = (id: Id | undefined, code: number, message: string): Parts =>
  errorMessage(id, errorObject(code, message))

/** Joins a text and two constants in one buffer. A template string would be copied twice. */
const around = (before: Buffer, text: string, after: Buffer): Buffer => {
  const bytes = Buffer.allocUnsafe(before.length + Buffer.byteLength(text) + after.length)
  bytes.set(before)
  bytes.set(after, before.length + bytes.write(text, before.length))
  return bytes
}
