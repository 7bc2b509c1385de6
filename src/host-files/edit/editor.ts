/**
 * Makes one change to the text of a configuration file. The rest is unchanged byte for byte: comments, order, indentation, line ends. The
 * result is parsed again and compared with the intended data, so that an unsupported form is refused and never damaged.
 */
import { extname } from 'node:path'
import { isDeepStrictEqual } from 'node:util'
import { jsonFormat } from './edit-json.ts'
import { tomlFormat } from './edit-toml.ts'
import { yamlFormat } from './edit-yaml.ts'
import { EditError } from './text-format.ts'
import type { Steps, TextFormat } from './text-format.ts'

const formatOf = (file: string): TextFormat => {
  const extension = extname(file).toLowerCase()
  if (extension === '.toml') return tomlFormat
  return extension === '.yaml' || extension === '.yml' ? yamlFormat : jsonFormat
}

const BOM = '\uFEFF'

/** Returns the content of the file as plain data; an empty file is an empty mapping. Throws `EditError`. */
export const readText = (file: string, text: string): unknown => {
  const value = formatOf(file).parse(text.replace(BOM, ''))
  return value ?? {}
}

/** Returns the text with `value` at `steps`, in place of a current value. Throws `EditError`, also if the result differs from the intended data. */
export const setIn = (file: string, text: string, steps: Steps, value: unknown): string =>
  changed(
    file,
    text,
    (format, before) => {
      if (lookIn(format.parse(before), steps) === undefined) return format.insert(before, steps, value)
      return format.replace?.(before, steps, value) ?? format.insert(format.remove(before, steps), steps, value)
    },
    (data) => put(data, steps, value),
  )

/** Returns the text without the value at `steps`; the same text if there is none. Throws `EditError`. */
export const removeIn = (file: string, text: string, steps: Steps): string =>
  lookIn(readText(file, text), steps) === undefined
    ? text
    : changed(
        file,
        text,
        (format, before) => format.remove(before, steps),
        (data) => cut(data, steps),
      )

/** Returns the text with `values` after the last item of the list at `steps`. Throws `EditError`. */
export const appendIn = (file: string, text: string, steps: Steps, values: readonly unknown[]): string =>
  changed(
    file,
    text,
    (format, before) => {
      const from = listAt(format.parse(before), steps).length
      return values.reduce<string>((next, value, at) => format.insert(next, [...steps, from + at], value), before)
    },
    (data) => {
      listAt(data, steps).push(...values)
      return data
    },
  )

/** Returns the text without some items of the list at `steps`; `places`: their positions, ascending. Throws `EditError`. */
export const removeItemsIn = (file: string, text: string, steps: Steps, places: readonly number[]): string =>
  changed(
    file,
    text,
    (format, before) => places.reduceRight<string>((next, place) => format.remove(next, [...steps, place]), before),
    (data) => places.reduceRight<unknown>((next, place) => cut(next, [...steps, place]), data),
  )

const listAt = (data: unknown, steps: Steps): unknown[] => {
  const list = lookIn(data, steps)
  return Array.isArray(list) ? list : []
}

const changed = (
  file: string,
  text: string,
  edit: (format: TextFormat, before: string) => string,
  apply: (data: unknown) => unknown,
): string => {
  const format = formatOf(file)
  const bom = text.startsWith(BOM) ? BOM : ''
  const before = text.slice(bom.length)
  const wanted = apply(copied(format.parse(before)) ?? {})
  const after = edit(format, before)
  if (!holds(format, after, wanted)) throw new EditError('is written in a form that cannot be changed without damage')
  return bom + after
}

/** Whether the text has this data. */
const holds = (format: TextFormat, text: string, wanted: unknown): boolean => {
  try {
    return isDeepStrictEqual(normal(format.parse(text)), normal(wanted))
  } catch (error) {
    if (error instanceof EditError) return false
    throw error
  }
}

/** A copy without shared values. A value that two places refer to (anchors) would otherwise be changed at both. */
const copied = (value: unknown): unknown => {
  if (typeof value !== 'object' || value === null || value instanceof Date) return value
  if (Array.isArray(value)) return value.map(copied)
  return Object.fromEntries(Object.entries(value).map(([key, member]) => [key, copied(member)]))
}

/** The value at `steps`; `undefined`: there is none. */
export const lookIn = (data: unknown, steps: Steps): unknown =>
  steps.reduce<unknown>((inner, step) => (isContainer(inner) && Object.hasOwn(inner, step) ? inner[step] : undefined), data)

/** A mapping with its keys, or a list with its positions. */
type Container = Record<string | number, unknown>

const isContainer = (value: unknown): value is Container => typeof value === 'object' && value !== null

const put = (data: unknown, steps: Steps, value: unknown): unknown => {
  const [step, ...rest] = steps
  if (step === undefined) return value
  const isList = typeof step === 'number'
  // Cast: TypeScript accepts only numbers as keys of a list.
  const container = isContainer(data) ? data : ((isList ? [] : {}) as Container)
  // A replaced item moves to the end of a list, as in the text. The order of a mapping is not compared.
  const inner = put(Object.hasOwn(container, step) ? container[step] : undefined, rest, value)
  if (Array.isArray(container) && rest.length === 0 && Object.hasOwn(container, step)) {
    container.splice(Number(step), 1)
    container.push(inner)
  } else Object.defineProperty(container, step, { value: inner, writable: true, enumerable: true, configurable: true })
  return container
}

const cut = (data: unknown, steps: Steps): unknown => {
  const container = lookIn(data, steps.slice(0, -1))
  // Cast: only members are removed.
  const last = steps.at(-1)!
  if (Array.isArray(container)) container.splice(Number(last), 1)
  else if (isContainer(container)) delete container[last]
  return data
}

/** Makes data comparable. No value, an empty mapping and an empty list mean the same to every host; removing the last member may leave any of them. */
const normal = (value: unknown): unknown => {
  if (typeof value !== 'object' || value === null) return value ?? undefined
  if (value instanceof Date) return value.toISOString()
  if (Array.isArray(value)) return value.length === 0 ? undefined : value.map(normal)
  const members = Object.entries(value).flatMap(([key, member]) => {
    const inner = normal(member)
    return inner === undefined ? [] : [[key, inner] as const]
  })
  return members.length === 0 ? undefined : Object.fromEntries(members)
}
