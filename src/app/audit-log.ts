/** The audit log of a running gateway: its file, and the recording of calls to it. A reload may replace both. */
import { AuditFile } from '../audit-file.ts'
import type { AuditState } from '../audit-file.ts'
import type { AuditSettings } from '../config/options.ts'
import type { Log } from '../values/log.ts'
import { Audit } from '../gateway/audit.ts'
import type { AuditSink } from '../gateway/audit.ts'
import type { Gateway } from '../gateway/gateway.ts'
import type { ListenerContext } from '../host/listener-context.ts'

/** The sources of records: calls of the gateway, and requests that its listeners refuse. */
export interface Recorded {
  readonly gateway: Gateway
  readonly context: { denied: ListenerContext['denied'] }
  readonly hideJson: (json: string) => string
}

/** A file that was opened and has no records yet. */
export interface NextAuditFile {
  /** Closes it. */
  discard(): Promise<void>
  /** Makes it the audit log, and closes the previous file. */
  use(): Promise<void>
}

/** A call that began before a reload is recorded in the file of its end. */
export class AuditLog implements AuditSink, AsyncDisposable {
  readonly #log: Log
  #settings: AuditSettings | undefined
  #file: AuditFile | undefined
  #recorded: Recorded | undefined

  constructor(log: Log, settings: AuditSettings | undefined, file: AuditFile | undefined) {
    this.#log = log
    this.#settings = settings
    this.#file = file
  }

  /** Rejects with `ConfigError` where the file cannot be opened. */
  static async open(settings: AuditSettings | undefined, log: Log): Promise<AuditLog> {
    return new AuditLog(log, settings, settings && (await AuditFile.open(settings, log)))
  }

  /** `undefined`: there is no audit log. */
  get state(): AuditState | undefined {
    return this.#file?.state
  }

  get trouble(): string | undefined {
    return this.#file?.trouble
  }

  write(line: string): void {
    this.#file?.write(line)
  }

  /** Starts recording. */
  record(recorded: Recorded): void {
    this.#recorded = recorded
    this.#attach()
  }

  /** Opens a file. Rejects with `ConfigError`, and changes nothing, if it cannot be opened. */
  async prepare(settings: AuditSettings | undefined): Promise<NextAuditFile> {
    const file = settings && (await AuditFile.open(settings, this.#log))
    return {
      discard: async () => file?.[Symbol.asyncDispose](),
      use: async () => {
        const before = this.#file
        this.#settings = settings
        this.#file = file
        this.#attach()
        await before?.[Symbol.asyncDispose]()
      },
    }
  }

  #attach(): void {
    if (this.#recorded === undefined) return
    const { gateway, context, hideJson } = this.#recorded
    const toolsetOf = gateway.toolsetOf.bind(gateway)
    const hiddenBy = gateway.hiddenBy.bind(gateway)
    const audit = this.#settings && new Audit({ sink: this, bodies: this.#settings.bodies, hideJson, toolsetOf, hiddenBy })
    gateway.auditBy(audit)
    context.denied = audit?.denied
  }

  /** Reopens the file by its name, after rotation. Rejects with `ConfigError` and keeps the old one. */
  async reopen(): Promise<void> {
    await this.#file?.reopen()
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#file?.[Symbol.asyncDispose]()
  }
}
