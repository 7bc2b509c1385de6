/** Where the fidelity matrix is not what its table says. */
import { CELLS } from './cells.ts'
import { FEATURES } from './run.ts'
import type { Observation } from './run.ts'

const cells = new Map(CELLS.map((cell) => [cell.key, cell]))
const features = new Map(FEATURES.map((feature) => [feature.name, feature]))

/** One line for each cell that was observed as something else than expected, and for each that was not probed. */
export const differences = (seen: readonly Observation[]): string[] => {
  const probed = new Set(seen.map(({ feature, host, server }) => `${feature}: ${host} × ${server}`))
  const wrong = seen.flatMap(({ feature, host, server, observed, error }) => {
    const [from, to] = [cells.get(host), cells.get(server)]
    const expected = from && to && features.get(feature)?.expected(from, to)
    const verdict = typeof expected === 'object' ? expected.verdict : expected
    return verdict === observed
      ? []
      : [`${feature}: ${host} × ${server}: expected ${verdict}, observed ${observed} ${error ?? ''}`.trimEnd()]
  })
  const missing = FEATURES.flatMap(({ name, expected }) =>
    CELLS.flatMap((host) =>
      CELLS.filter((server) => expected(host, server) !== 'none').map((server) => `${name}: ${host.key} × ${server.key}`),
    ),
  ).filter((cell) => !probed.has(cell))
  return [...wrong, ...missing.map((cell) => `${cell}: not probed`)]
}
