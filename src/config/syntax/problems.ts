/** What is wrong with a configuration: every problem with its place, its path and what to do, all at once. */
import { nearest } from './tree.ts'
import type { Tree } from './tree.ts'

export interface Problem {
  /** `trunkline.yaml:31:7`; relative to the working directory where that is shorter. */
  readonly place: string
  /** `servers.github.timeouts.idle`; empty for the file as a whole. */
  readonly path: string
  readonly message: string
  /** What to do about it; empty where the message already says so. */
  readonly remedy: string
  /** A duplicate key in JSON: hosts read such a file and use the last one. */
  readonly isDuplicate?: true
}

/** Adds a problem at a path below a node that the caller of `reporterAt` chose. */
export type ReportProblem = (path: readonly PropertyKey[], message: string, remedy: string) => void

/** Reports problems below `tree`, each at the nearest node that the file has. */
export const reporterAt =
  (tree: Tree | undefined, problems: Problem[]): ReportProblem =>
  (path, message, remedy) => {
    // Cast: only what a file contains is reported.
    const node = nearest(tree!, path)
    problems.push({ place: node.place, path: node.path, message, remedy })
  }

/** Refuses a configuration. `message` holds one problem per line. */
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
