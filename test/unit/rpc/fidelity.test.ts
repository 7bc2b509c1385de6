/** What is counted, recorded and logged where a call differs on its two sides. */
import { expect, test, vi } from 'vitest'
import type { HostSession } from '../../../src/rpc/call.ts'
import { Fidelity } from '../../../src/rpc/fidelity.ts'
import type { Affected } from '../../../src/rpc/fidelity.ts'
import type { Deviation } from '../../../src/rpc/record.ts'

const makeFidelity = () => {
  const lines: (readonly [string, object, string])[] = []
  const log = {
    debug: (facts: object, message: string) => void lines.push(['debug', facts, message]),
    info: (facts: object, message: string) => void lines.push(['info', facts, message]),
  }
  return { lines, levels: () => lines.splice(0).map(([level]) => level), fidelity: new Fidelity('gh', log) }
}
const sessionOf = (id: string): HostSession => ({ id }) as HostSession
/** Cast: what is looked at. */
const callOf = (session?: HostSession, record?: Affected['record']): Affected =>
  ({ ref: 7, method: 'tools/call', caller: { session }, record }) as Affected

test('a deviation is counted, kept with its call, and logged with what is known of it', () => {
  const { fidelity, lines } = makeFidelity()
  const deviated = vi.fn<(deviation: Deviation) => void>()
  fidelity.note('block', callOf(undefined, { deviated }), { type: 'audio' })
  fidelity.note('block')
  fidelity.note('unattributed')
  const block = { verdict: 'projected', feature: 'content', rule: 'B107' }
  const reason = 'a content block that the host’s revision does not know became text'
  expect(deviated.mock.calls).toEqual([[{ ...block, reason }]])
  expect(fidelity.counts).toEqual([
    { ...block, reason, count: 2 },
    { verdict: 'impossible', feature: 'input', rule: 'B049', reason: expect.any(String) as string, count: 1 },
  ])
  expect(lines[0]).toEqual(['debug', { server: 'gh', ref: 7, method: 'tools/call', ...block, type: 'audio' }, reason])
  expect(lines.map(([level]) => level)).toEqual(['debug', 'debug', 'info'])
})

test('what is impossible is news once for each session, and once for all hosts without one', () => {
  const { fidelity, levels } = makeFidelity()
  const [first, second] = [sessionOf('1'), sessionOf('2')]
  for (const session of [first, first, second, undefined, undefined]) fidelity.note('taskIgnored', callOf(session))
  fidelity.note('taskIgnored')
  expect(levels()).toEqual(['info', 'debug', 'info', 'info', 'debug', 'debug'])
  fidelity.note('context', callOf(first))
  fidelity.note('context', callOf(first))
  expect(levels()).toEqual(['info', 'debug'])
})
