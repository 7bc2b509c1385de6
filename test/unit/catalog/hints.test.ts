/** Which hints of tools policies go by. */
import { expect, test } from 'vitest'
import { believed, hintsOf, holds } from '../../../src/catalog/hints.ts'
import type { HintName, Hints } from '../../../src/catalog/hints.ts'
import { toolOf } from './fixtures.ts'

const NAMES: readonly HintName[] = ['readOnlyHint', 'destructiveHint', 'idempotentHint', 'openWorldHint']

test.each<[Hints, readonly boolean[]]>([
  [{}, [false, true, false, true]],
  [{ readOnlyHint: false }, [false, true, false, true]],
  [{ readOnlyHint: true }, [true, false, true, true]],
  [{ readOnlyHint: true, destructiveHint: true, idempotentHint: false, openWorldHint: false }, [true, false, true, false]],
  [{ destructiveHint: false, idempotentHint: true }, [false, false, true, true]],
])('with the annotations %j a tool is read-only, destructive, idempotent and open as they say: %j', (hints, expected) => {
  expect(NAMES.map((hint) => believed(hint, hints))).toEqual(expected)
})

test.each<[annotations: unknown, Hints]>([
  [undefined, {}],
  ['readOnlyHint', {}],
  [{}, {}],
  [
    { readOnlyHint: true, destructiveHint: false, title: 'x' },
    { readOnlyHint: true, destructiveHint: false },
  ],
  [{ readOnlyHint: 'true', idempotentHint: 1, openWorldHint: null }, {}],
])('the annotations %j say %j', (annotations, hints) => {
  expect(hintsOf(toolOf('x', { annotations }).raw)).toEqual(hints)
})

test('B269 annotations are read under any spelling of their keys', () => {
  const raw = Buffer.from(String.raw`{"name":"x","\u0061nnotations":{"readOnly\u0048int":true}}`)
  expect(hintsOf(raw)).toEqual({ readOnlyHint: true })
})

test('a server is believed only if it is trusted, and the operator always; the word of the toolset counts most', () => {
  const entry = toolOf('x', { annotations: { readOnlyHint: true } })
  const reads = (trusted: boolean | undefined, told?: Hints, ofToolset?: Hints): boolean =>
    holds('readOnlyHint', { server: { trusted }, entry: { ...entry, told } }, ofToolset)
  expect([reads(undefined), reads(false), reads(true)]).toEqual([false, false, true])
  expect([reads(undefined, { readOnlyHint: true }), reads(true, { readOnlyHint: false })]).toEqual([true, false])
  expect(reads(undefined, { readOnlyHint: true }, { readOnlyHint: false })).toBe(false)
})
