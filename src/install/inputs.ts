/** What an installation asks a person: values that a description of a server leaves open. */

export interface InputRequest {
  /** Of the variable, header or option. */
  readonly name: string
  readonly description: string | undefined
  readonly isRequired: boolean
  readonly isSecret: boolean
  /** Taken where nothing is answered. */
  readonly standard: string | undefined
  /** The only values there are. */
  readonly choices: readonly string[] | undefined
}

/** `undefined`: no answer; a required value is then left to the `env_file`. */
export type Answer = (request: InputRequest) => Promise<string | undefined>

/** Why something cannot be installed, with the remedy. */
export class InstallError extends Error {
  override readonly name = 'InstallError'
}
