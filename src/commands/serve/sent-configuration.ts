/**
 * A configuration on its way from the supervisor to a worker. Workers get it from the supervisor and read no files: a worker that restarts
 * while a file is being edited serves what the others serve, and a program that prints a secret runs once.
 */
import { types } from 'node:util'
import type { Configuration } from '../../config/options.ts'

/** A configuration in which a `String` object stands for each `URL`, since the structured clone of the channel keeps no `URL`. */
export type SentConfiguration = Readonly<Record<string, unknown>>

export const sentConfiguration = (configuration: Configuration): SentConfiguration => mapMembers(configuration, sent)

export const receivedConfiguration = (configuration: SentConfiguration): Configuration =>
  // Cast: both sides have the same build.
  mapMembers(configuration, received) as unknown as Configuration

const sent = (value: unknown): unknown => (value instanceof URL ? Object(value.href) : mapped(value, sent))

const received = (value: unknown): unknown => (types.isStringObject(value) ? new URL(value.valueOf()) : mapped(value, received))

/** Tables (`Map`) stay as they are: they contain no URL. */
const mapped = (value: unknown, map: (member: unknown) => unknown): unknown => {
  if (Array.isArray(value)) return value.map(map)
  return isPlain(value) ? mapMembers(value, map) : value
}

const isPlain = (value: unknown): value is object =>
  typeof value === 'object' && value !== null && Object.getPrototypeOf(value) === Object.prototype

const mapMembers = (value: object, map: (member: unknown) => unknown): SentConfiguration =>
  Object.fromEntries(Object.entries(value).map(([key, member]) => [key, map(member)]))
