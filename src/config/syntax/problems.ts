/** What is wrong with a configuration: every problem with its place, its path and what to do, all at once. */

export interface Problem {
  /** `trunkline.yaml:31:7`; relative to the working directory where that is shorter. */
  readonly place: string
  /** `servers.github.timeouts.idle`; empty for the file as a whole. */
  readonly path: string
  readonly message: string
  /** What to do about it; empty where the message already says so. */
  readonly remedy: string
}

/** Thrown by everything in this room that refuses a configuration. `message` holds one problem per line. */
export class ConfigError extends Error {
  override readonly name = 'ConfigError'
  readonly problems: readonly Problem[]

  constructor(problems: readonly Problem[]) {
    const seen = new Map([...problems].sort(byPlace).map((problem) => [formatProblem(problem), problem]))
    super([...seen.keys()].join('\n'))
    this.problems = [...seen.values()]
  }
}

/** Files in their order by name, lines and columns as numbers. */
const byPlace = (a: Problem, b: Problem): number => a.place.localeCompare(b.place, 'en', { numeric: true })

export const formatProblem = ({ place, path, message, remedy }: Problem): string =>
  `${place}${path && ` ${path}`}: ${message}${remedy && `; ${remedy}`}`
