/** The error of a scan of JSON text, with its place. */
export class ScanError extends Error {
  /** `syntax`: not JSON; `key`: a deciding key that is repeated or in another case; `limit`: an exceeded limit. */
  readonly kind: 'syntax' | 'key' | 'limit'
  readonly offset: number
  /** The option of the exceeded limit. */
  readonly limit: string | undefined
  constructor(
    kind: 'syntax' | 'key' | 'limit',
    message: string,
    offset: number,
    facts: { limit?: string; cause?: unknown } = {},
  ) {
    super(message, facts.cause === undefined ? undefined : { cause: facts.cause })
    this.limit = facts.limit
    this.name = 'ScanError'
    this.kind = kind
    this.offset = offset
  }
}
