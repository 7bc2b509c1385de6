/** How a scan of JSON text fails. */

/** What was wrong and where: `syntax` is not JSON, `key` is an escaped or repeated key where names matter, `limit` names the limit. */
export class ScanError extends Error {
  readonly kind: 'syntax' | 'key' | 'limit'
  readonly offset: number
  /** The option of that limit. */
  readonly limit: string | undefined
  constructor(kind: 'syntax' | 'key' | 'limit', message: string, offset: number, limit?: string) {
    super(message)
    this.limit = limit
    this.name = 'ScanError'
    this.kind = kind
    this.offset = offset
  }
}
