/** `listen.workers`: how many processes serve hosts, and the options that several processes cannot have. */
import { availableParallelism } from 'node:os'
import { MAX_WORKERS } from '../../schema/kinds.ts'
import type { Gathered } from '../../read/gather.ts'
import { reporterAt } from '../../syntax/problems.ts'
import type { Problem } from '../../syntax/problems.ts'

/** Options of a single process: the YAML path, whether it is configured, and the remedy. */
const OF_ONE_PROCESS = [
  {
    path: 'replicas.url',
    isGiven: ({ settings }: Gathered) => settings.replicas?.url !== undefined,
    remedy: 'start one replica for each core instead, or remove "replicas" and "store": workers share all of that by themselves',
  },
  {
    path: 'listen.unix',
    isGiven: ({ settings }: Gathered) => settings.listen?.unix !== undefined,
    remedy: 'listen at a TCP address of this machine, or remove "workers"',
  },
  {
    path: 'listen.systemd',
    isGiven: ({ settings }: Gathered) => settings.listen?.systemd === true,
    remedy: 'listen at listen.http.bind, or remove "workers"',
  },
]

/** Adds a problem for each option that several processes cannot have. `auto` counts as several, also on a machine of one core. */
export const buildWorkers = (gathered: Gathered, problems: Problem[]): number => {
  const { settings, sections } = gathered
  const workers = settings.listen?.workers ?? 1
  if (workers === 1) return 1
  const report = reporterAt(sections.get('listen'), problems)
  for (const { path, isGiven, remedy } of OF_ONE_PROCESS)
    if (isGiven(gathered)) report(['workers'], `"workers" and ${path} exclude each other`, remedy)
  return workers === 'auto' ? Math.min(MAX_WORKERS, availableParallelism()) : workers
}
