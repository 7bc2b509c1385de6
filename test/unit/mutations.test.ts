/** The places at which `npm run mutate` breaks the program. */
import vm from 'node:vm'
import { expect, test } from 'vitest'
import { draw, placesIn, withSwitches } from '../../scripts/mutations.ts'

const broken = (source: string): string[] =>
  placesIn('a.ts', source).map(({ start, end, text }) => source.slice(0, start) + text + source.slice(end))

test('conditions are turned round, operators taken for their neighbours, effects left out', () => {
  expect(broken('if (a < 1) b()')).toEqual(['if (!(a < 1)) b()', 'if ((a) <= (1)) b()', 'if (a < 1) void 0'])
  expect(broken('x = a && true')).toEqual(['void 0', 'x = (a) || (true)', 'x = a && false'])
  // What stands beside a type has an effect all the same; the whole stays one expression.
  expect(broken('const x = (a ?? b) as true')).toEqual(['const x = ((a) && (b)) as true'])
  expect(broken('const x = a ?? b ?? c')).toEqual(['const x = (a ?? b) && (c)', 'const x = (a) && (b) ?? c'])
})

test('with switches the source is what it was, and each mutation where its switch is on', () => {
  const source = 'let n = 0\nconst f = (a, b) => {\n  n = 1\n  if (a < 1 && !b) return true\n  return a + n\n}\nout = f'
  const places = placesIn('a.ts', source).filter(({ before }) => before !== 'out = f')
  const run = (text: string, on: number): readonly unknown[] => {
    const out = vm.runInNewContext(`let out; ${text}; out`, { isMutant: (key: number) => key === on }) as (
      ...args: unknown[]
    ) => unknown
    return [out(0, false), out(1, false), out(0, true), out(2, true)]
  }
  const all = withSwitches(source, new Map(places.entries()), 'isMutant')
  expect(all.split('\n')).toHaveLength(source.split('\n').length)
  expect(run(all, -1)).toEqual(run(source, -1))
  for (const [key, { start, end, text }] of places.entries())
    expect(run(all, key)).toEqual(run(source.slice(0, start) + text + source.slice(end), -1))
  expect(new Set(places.map((_, key) => JSON.stringify(run(all, key)))).size).toBeGreaterThan(3)
})

test('what runs while its module is loaded is told apart from what a function does', () => {
  const places = placesIn('a.ts', 'const a = 1 + n\nconst b = (c = true) => c || a\nclass D { e = !f() && g; static h = f || g }')
  expect(places.map(({ before, isStatic }) => [before, isStatic])).toEqual([
    ['1 + n', true],
    ['true', false],
    ['c || a', false],
    ['!f() && g', false],
    ['f || g', true],
  ])
})

test('types, texts, log lines and what a constructor keeps are left alone', () => {
  expect(broken("type A = 'a' | true")).toEqual([])
  expect(broken("const a = 'b' + c")).toEqual([])
  expect(broken("this.#log.warn('a')")).toEqual([])
  expect(broken('this.#a = a')).toEqual([])
})

test('a place is named by file and line', () => {
  expect(placesIn('src/a.ts', 'const a = 1\nconst b = a === 2')).toMatchObject([
    { file: 'src/a.ts', line: 2, before: 'a === 2', text: '(a) !== (2)', after: '!==' },
  ])
})

test('a file is drawn as often as it is long, whatever folder it is in, and no place twice', () => {
  const line = 'a = b\n'
  const sources = [
    { file: 'src/short.ts', text: line.repeat(10) },
    { file: 'src/folder/long.ts', text: line.repeat(90) },
    { file: 'src/folder/none.ts', text: '\n'.repeat(1_000) },
  ]
  const numbers = (function* () {
    // Lines at even distances, and each time the first place that is left.
    for (let at = 0; at < 20; at++) yield* [(at + 0.5) / 20, 0]
  })()
  const some = draw(sources, 20, () => numbers.next().value ?? 0)
  expect(some.filter(({ file }) => file === 'src/short.ts')).toHaveLength(2)
  const all = draw(sources, 1_000, Math.random)
  expect(new Set(all.map(({ file, line: at }) => `${file}:${at}`)).size).toBe(100)
})
