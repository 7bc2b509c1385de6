/** `listen.workers`: how many processes serve hosts, and what cannot be had together with several. */
import { availableParallelism } from 'node:os'
import { MAX_WORKERS } from '../../schema/kinds.ts'
import type { Gathered } from '../../read/gather.ts'
import type { Problem } from '../../syntax/problems.ts'
import { nearest } from '../../syntax/tree.ts'

/** What belongs to one process: its YAML path, whether it is configured, and the remedy. */
const OF_ONE_PROCESS = [
  {
    path: 'replicas.url',
    isGiven: ({ settings }: Gathered) => settings.replicas?.url !== undefined,
    remedy:
      'start one replica for each core instead, or leave "replicas" and "store" out: workers share all of that by themselves',
  },
  {
    path: 'listen.unix',
    isGiven: ({ settings }: Gathered) => settings.listen?.unix !== undefined,
    remedy: 'listen at a TCP address of this machine, or leave "workers" out',
  },
  {
    path: 'listen.systemd',
    isGiven: ({ settings }: Gathered) => settings.listen?.systemd === true,
    remedy: 'listen at listen.http.bind, or leave "workers" out',
  },
]

/** Adds a problem for each option that several processes could not share. `auto` counts as several, also on a machine of one core. */
export const buildWorkers = (gathered: Gathered, problems: Problem[]): number => {
  const { settings, sections } = gathered
  const workers = settings.listen?.workers ?? 1
  const section = sections.get('listen')
  if (workers === 1 || section === undefined) return 1
  const { place, path } = nearest(section, ['workers'])
  for (const { path: other, isGiven, remedy } of OF_ONE_PROCESS)
    if (isGiven(gathered)) problems.push({ place, path, message: `"workers" and ${other} exclude each other`, remedy })
  return workers === 'auto' ? Math.min(MAX_WORKERS, availableParallelism()) : workers
}
