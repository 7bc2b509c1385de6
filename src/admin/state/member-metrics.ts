/** The metrics of several processes as one (`listen.workers`), with a label for the process. */
import type { Family } from '../../observe/metrics/exposition.ts'

/** `worker`: the value of the label. */
export interface MemberFamilies {
  readonly worker: string
  readonly families: readonly Family[]
}

/** Each family once, with the series of all processes, in the order of first occurrence. */
export const joinFamilies = (members: readonly MemberFamilies[]): readonly Family[] => {
  const joined = new Map<string, Family>()
  for (const { worker, families } of members)
    for (const family of families) {
      const own = withWorker(family, worker)
      const before = joined.get(family.name)
      // Cast: families of one name are of one kind, which TypeScript does not know.
      joined.set(family.name, before === undefined ? own : ({ ...own, samples: [...before.samples, ...own.samples] } as Family))
    }
  return [...joined.values()]
}

const withWorker = (family: Family, worker: string): Family =>
  // Cast: the samples stay those of the kind of family.
  ({ ...family, samples: family.samples.map((sample) => ({ ...sample, labels: { worker, ...sample.labels } })) }) as Family
