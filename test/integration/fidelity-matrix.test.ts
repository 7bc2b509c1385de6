/** The fidelity matrix (docs/protocol.md): every feature between every host and every server arrives as the table says, or not at all. */
import { expect, test } from 'vitest'
import { differences } from '../support/fidelity/differences.ts'
import { probeAll } from '../support/fidelity/run.ts'

/** Some four thousand probes. */
const TIMEOUT_MS = 400_000

test(
  'B032 B037 B038 B073 B082 B089 B094 B103 B106 B107 B108 B146 B206 B219 each cell of the matrix is full, projected or impossible as its table says',
  async () => {
    expect(differences(await probeAll())).toEqual([])
  },
  TIMEOUT_MS,
)
