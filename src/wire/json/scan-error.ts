/** How a scan of JSON text fails. */

/** What was wrong and where: `syntax` is not JSON, `key` is a repeated key, or one in another case, where it decides, `limit` names the limit. */
export class ScanError extends Error {
  readonly kind: 'syntax' | 'key' | 'limit'
  readonly offset: number
  /** The option of that limit. */
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
