/** A JSON-RPC id as a span names it: without the quotes that make it a text. */
import type { Id } from '../wire/message/envelope.ts'

export const idText = (id: Id): string => {
  const value: unknown = JSON.parse(id)
  return typeof value === 'string' ? value : id
}
