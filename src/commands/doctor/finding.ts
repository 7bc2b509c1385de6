/** The findings of `trunkline doctor`, and the input of its checks. */
import type { Configuration } from '../../config/options.ts'
import type { Discovered } from '../../host-files/discovered.ts'
import type { Invocation } from '../terminal/io.ts'

/** A repair that `--fix` makes without a question. */
export type Fix =
  /** Writes the absolute path of a command into our configuration. */
  | { readonly kind: 'command'; readonly server: string; readonly path: string }
  /** Removes the permissions of other users from a file with secrets. */
  | { readonly kind: 'mode'; readonly file: string }

export interface Finding {
  /** `trouble`: something does not work; `advice`: it may fail. */
  readonly level: 'trouble' | 'advice'
  readonly text: string
  /** What to do about it. */
  readonly remedy: string
  readonly fix?: Fix
}

/** The environment under examination. */
export interface Examined {
  readonly configuration: Configuration
  /** Set if there is no configuration: the servers come from files of hosts. */
  readonly discovered: Discovered | undefined
  /** Keys of the servers whose entries `--fix` can change: those in the first file, if it is YAML and ours. */
  readonly own: ReadonlySet<string>
  readonly invocation: Invocation
  /** `PATH` of the login shell; `undefined`: it cannot be read. */
  readonly shellPath: string | undefined
  /** `PATH` of programs that are started from a desktop; `undefined`: it cannot be read. */
  readonly desktopPath: string | undefined
  /** A process of this configuration runs. */
  readonly isRunning: boolean
}

/** Returns nothing for a check that cannot be made. Never rejects. */
export type Check = (examined: Examined) => Promise<readonly Finding[]>
