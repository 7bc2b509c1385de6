/** Which subjects of the benchmark are up at once. */
import { expect, test } from 'vitest'
import { fullCopies } from '../../bench/cells.ts'
import { fieldsOf } from '../../bench/fields.ts'
import { SUBJECTS } from '../../bench/subjects.ts'

const fields = fieldsOf(SUBJECTS, () => true, fullCopies)
const inRole = (wanted: 'counted' | 'baseline') =>
  fields.map(({ subjects, role }) =>
    subjects.flatMap(({ name, between }) =>
      between.filter((pair) => role(name, pair) === wanted).map((pair) => `${name} ${pair.join(' → ')}`),
    ),
  )

test('each pair of each subject counts in one field', () => {
  const all = SUBJECTS.flatMap(({ name, between }) => between.map((pair) => `${name} ${pair.join(' → ')}`))
  expect(inRole('counted').flat().sort()).toEqual(all.sort())
})

test('a baseline is up in every field, and what is judged has as many processes of it', () => {
  const [counted, beside] = [inRole('counted'), inRole('baseline')]
  for (const at of fields.keys()) expect([...counted[at]!, ...beside[at]!].some((name) => /^(raw|lines) /.test(name))).toBe(true)
  const judged = fields.filter(({ subjects, role }) =>
    subjects.some(
      ({ name, between }) =>
        name === 'trunkline' && between.some((pair) => role(name, pair) === 'counted' && pair[1] === 'stdio'),
    ),
  )
  expect(judged.map(({ copies }) => copies)).toEqual([3])
})

test('few subjects are up at once', () => {
  expect(Math.max(...fields.map(({ subjects }) => subjects.length))).toBeLessThanOrEqual(8)
})
