/** Values that an installation asks the user for, because the description of the server leaves them open. */

export interface InputRequest {
  /** Name of the variable, header or option. */
  readonly name: string
  readonly description: string | undefined
  readonly isRequired: boolean
  readonly isSecret: boolean
  /** The value if there is no answer. */
  readonly standard: string | undefined
  /** The allowed values; `undefined`: any. */
  readonly choices: readonly string[] | undefined
}

/** Resolves with `undefined` if there is no answer. A required value is then a variable for the `env_file`. */
export type Answer = (request: InputRequest) => Promise<string | undefined>

/** An installation failed. The message contains the reason and the remedy. */
export class InstallError extends Error {
  override readonly name = 'InstallError'
}
