/** What `trunkline doctor` finds, and what its checks are given. */
import type { Configuration } from '../../config/options.ts'
import type { Invocation } from '../terminal/io.ts'

/** How `--fix` repairs a finding without a question. */
export type Fix =
  /** Writes the absolute path of a command into our own configuration. */
  | { readonly kind: 'command'; readonly server: string; readonly path: string }
  /** Takes the permissions of others from a file with secrets. */
  | { readonly kind: 'mode'; readonly file: string }

export interface Finding {
  /** `trouble`: something does not work; `advice`: it may not. */
  readonly level: 'trouble' | 'advice'
  readonly text: string
  /** What a person does about it. */
  readonly remedy: string
  readonly fix?: Fix
}

/** The environment under examination. */
export interface Examined {
  readonly configuration: Configuration
  readonly invocation: Invocation
  /** `PATH` of the login shell; `undefined`: it cannot be read. */
  readonly shellPath: string | undefined
  /** `PATH` of programs that are started from a desktop; `undefined`: it cannot be read. */
  readonly desktopPath: string | undefined
  /** A process of this configuration runs. */
  readonly isRunning: boolean
}

/** A check that cannot be made finds nothing. Never rejects. */
export type Check = (examined: Examined) => Promise<readonly Finding[]>
