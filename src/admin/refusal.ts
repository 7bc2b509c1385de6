/** A refused request of the admin socket or listener: a status, a code for programs, a sentence for people. */
export class AdminRefusal extends Error {
  readonly status: number
  readonly code: string
  /** Position in a filter. */
  readonly at: number | undefined
  /** Further headers of the answer of the listener. */
  readonly headers: Readonly<Record<string, string>>
  constructor(status: number, code: string, message: string, at?: number, headers: AdminRefusal['headers'] = {}) {
    super(message)
    this.name = 'AdminRefusal'
    this.status = status
    this.code = code
    this.at = at
    this.headers = headers
  }

  get body(): object {
    const { code, message, at } = this
    return { error: { code, message, ...(at !== undefined && { at }) } }
  }
}

/** The running process gives no answer that this program understands. The message contains the remedy. */
export class AdminFailure extends Error {
  override readonly name: string = 'AdminFailure'
  constructor(reason: string, cause?: unknown) {
    super(`${reason}; start it again`, { cause })
  }
}
