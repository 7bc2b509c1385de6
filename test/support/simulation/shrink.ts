/** Makes a plan that fails as small as it gets: fewer events, then fewer hosts and servers, as long as it fails in the same way. */
import type { Plan } from './plan.ts'

/** What a finding is about, without its numbers. */
export const kindOf = (finding: string): string => finding.replaceAll(/\d+/g, '#').slice(0, 50)

/** `findingsOf`: runs a plan. Resolves with the smallest plan found within `maxRuns` runs. */
export const shrink = async (
  plan: Plan,
  finding: string,
  findingsOf: (plan: Plan) => Promise<readonly string[]>,
  maxRuns = 300,
): Promise<Plan> => {
  let smallest = plan
  let runs = 0
  const take = async (next: Plan): Promise<boolean> => {
    if (runs++ >= maxRuns) return false
    const findings = await findingsOf(next)
    if (!findings.some((found) => kindOf(found) === kindOf(finding))) return false
    smallest = next
    return true
  }
  for (;;) {
    const before = smallest
    for (let count = Math.max(1, smallest.events.length >> 1); count >= 1; count >>= 1)
      for (let at = 0; at < smallest.events.length;)
        if (!(await take({ ...smallest, events: smallest.events.toSpliced(at, count) }))) at += count
    if (smallest === before) break
  }
  const { servers, hosts, events } = smallest
  const last = (member: 'server' | 'host' | 'replica'): number =>
    Math.max(0, ...events.map((event) => Number((event as unknown as Record<string, unknown>)[member] ?? 0)))
  await take({ ...smallest, servers: servers.slice(0, last('server') + 1) })
  await take({ ...smallest, hosts: hosts.slice(0, last('host') + 1) })
  if (smallest.replicas !== undefined)
    for (let count = Math.max(2, last('replica') + 1); count < smallest.replicas.length; count++)
      if (await take({ ...smallest, replicas: smallest.replicas.slice(0, count) })) break
  return smallest
}
