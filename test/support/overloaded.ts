/** The state of a gateway that is near its own limits, without the load. */
import type { Overload } from '../../src/host/limits/overload.ts'

type Answers = Pick<Overload, 'shedding' | 'reason' | 'limit'>

/** From now on `overload` answers so; what its sweeps measure no longer counts. */
export const overloaded = (overload: Answers, answers: Partial<Answers>): void => {
  for (const [name, value] of Object.entries(answers)) Object.defineProperty(overload, name, { value, configurable: true })
}
