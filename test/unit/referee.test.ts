/** The referee of soak and chaos finds what it is there to find. */
import { expect, test } from 'vitest'
import { Referee } from '../support/referee.ts'

const CLEAN = { calls: 1, answered: 0, failed: {}, broken: 0, lost: 0, crossed: 0, doubled: 0, untrue: 0 }

test.each<[string, object, (referee: Referee, nonce: number) => void]>([
  [
    'one that is executed and answered',
    { answered: 1 },
    (referee, nonce) => {
      referee.executed(nonce)
      referee.ended(nonce, { type: 'answered', nonce })
    },
  ],
  [
    'one whose stream was closed, executed or not',
    { broken: 1 },
    (referee, nonce) => {
      referee.ended(nonce, { type: 'broken' })
      referee.executed(nonce)
    },
  ],
  [
    'one that was refused',
    { failed: { starting: 1 } },
    (referee, nonce) => referee.ended(nonce, { type: 'failed', kind: 'starting', executed: 'no' }),
  ],
  ['one that nobody ended: lost', { lost: 1 }, (referee, nonce) => referee.executed(nonce)],
  [
    'an answer to another call: crossed',
    { answered: 1, crossed: 1 },
    (referee, nonce) => {
      referee.executed(nonce)
      referee.ended(nonce, { type: 'answered', nonce: nonce + 1 })
    },
  ],
  [
    'an answer that no server gave: crossed',
    { answered: 1, crossed: 1 },
    (referee, nonce) => referee.ended(nonce, { type: 'answered', nonce }),
  ],
  [
    'two executions, the second long after the answer: doubled',
    { answered: 1, doubled: 1 },
    (referee, nonce) => {
      referee.executed(nonce)
      referee.ended(nonce, { type: 'answered', nonce })
      referee.executed(nonce)
    },
  ],
  [
    'two answers: doubled',
    { answered: 2, doubled: 1 },
    (referee, nonce) => {
      referee.executed(nonce)
      referee.ended(nonce, { type: 'answered', nonce })
      referee.ended(nonce, { type: 'answered', nonce })
    },
  ],
  [
    '"executed: no" of what was executed: untrue',
    { failed: { lost: 1 }, untrue: 1 },
    (referee, nonce) => {
      referee.executed(nonce)
      referee.ended(nonce, { type: 'failed', kind: 'lost', executed: 'no' })
    },
  ],
  [
    '"executed: no" before the execution: untrue',
    { failed: { lost: 1 }, untrue: 1 },
    (referee, nonce) => {
      referee.ended(nonce, { type: 'failed', kind: 'lost', executed: 'no' })
      referee.executed(nonce)
    },
  ],
])('of a call: %s', (_, expected, play) => {
  const verdict = { ...CLEAN, ...expected }
  const referee = new Referee()
  play(referee, referee.begin())
  expect(referee.verdict).toEqual(verdict)
  expect(referee.isClean).toBe(verdict.lost + verdict.crossed + verdict.doubled + verdict.untrue === 0)
})

test('waits until every call has ended', async () => {
  const referee = new Referee()
  const nonce = referee.begin()
  const settled = referee.settled(60_000)
  referee.ended(nonce, { type: 'broken' })
  await settled
  expect(referee.open).toBe(0)
})
