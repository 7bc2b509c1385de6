/** Access to parsed JSON of unknown shape, such as what servers and hosts send. Nothing here throws. */
import { attempt } from './attempt.ts'

/** A JSON object whose members are not known. */
export type UnknownObject = Readonly<Record<string, unknown>>

/** Whether the value is a JSON object: neither `null` nor a list. */
export const isJsonObject = (value: unknown): value is UnknownObject =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

/** The JSON object, or `undefined` for any other value. */
export const jsonObject = (value: unknown): UnknownObject | undefined => (isJsonObject(value) ? value : undefined)

/** The member `key` of a JSON object; `undefined` for any other value. */
export const memberOf = (value: unknown, key: string): unknown => jsonObject(value)?.[key]

/** A JSON array whose items are unknown. `Array.isArray` alone makes them `any`. */
export const isList = (value: unknown): value is readonly unknown[] => Array.isArray(value)

/** The value of a JSON text; `undefined` for any other text. */
export const parseJson = (text: string): unknown => attempt((): unknown => JSON.parse(text))

/** The JSON object in a text, or `undefined` for any other text. */
export const parseJsonObject = (text: string): UnknownObject | undefined => jsonObject(parseJson(text))

/** Whether the value is a number without a fraction. `Number.isInteger` does not narrow the type. */
export const isInteger = (value: unknown): value is number => Number.isInteger(value)
