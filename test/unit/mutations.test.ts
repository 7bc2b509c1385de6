/** The places at which `npm run mutate` breaks the program. */
import { expect, test } from 'vitest'
import { placesIn } from '../../scripts/mutations.ts'

const broken = (source: string): string[] =>
  placesIn('a.ts', source).map(({ start, end, text }) => source.slice(0, start) + text + source.slice(end))

test('conditions are turned round, operators taken for their neighbours, effects left out', () => {
  expect(broken('if (a < 1) b()')).toEqual(['if (!(a < 1)) b()', 'if ((a) <= (1)) b()', 'if (a < 1) void 0'])
  expect(broken('x = a && true')).toEqual(['void 0', 'x = (a) || (true)', 'x = a && false'])
})

test('types, texts, log lines and what a constructor keeps are left alone', () => {
  expect(broken("type A = 'a' | true")).toEqual([])
  expect(broken("const a = 'b' + c")).toEqual([])
  expect(broken("this.#log.warn('a')")).toEqual([])
  expect(broken('this.#a = a')).toEqual([])
})

test('a place is named by file and line', () => {
  expect(placesIn('src/a.ts', 'const a = 1\nconst b = a === 2')).toMatchObject([
    { file: 'src/a.ts', line: 2, before: 'a === 2', text: '(a) !== (2)' },
  ])
})
