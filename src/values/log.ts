/** The part of a logger that modules use. */
export interface Log {
  /** `facts`: plain data, such as the key of a server and the kind of a failure. `message`: one sentence. */
  debug(facts: object, message: string): void
  info(facts: object, message: string): void
  warn(facts: object, message: string): void
  error(facts: object, message: string): void
}
