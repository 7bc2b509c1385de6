/** Reloads the configuration when its files change, on SIGHUP and on request. An invalid one changes nothing and is logged. */
import { isDeepStrictEqual } from 'node:util'
import type { Subscription } from 'rxjs'
import { problemsOf } from '../../admin/control.ts'
import type { PastReload, PlanEnd, Reloader, ReloadEnd } from '../../admin/change/reload-ends.ts'
import { basisOf } from '../../admin/change/basis.ts'
import { plannedWith } from '../../admin/change/plan.ts'
import type { Plan } from '../../admin/change/plan.ts'
import type { Running } from '../../app/running.ts'
import { diffConfigurations } from '../../config/change/difference.ts'
import type { Configuration } from '../../config/options.ts'
import { formatProblem } from '../../config/syntax/problems.ts'
import type { Problem } from '../../config/syntax/problems.ts'
import type { RuntimeEnvironment, EditedFile } from '../../config/runtime-environment.ts'
import { watchConfiguration } from '../../config/change/watch.ts'
import type { Log } from '../../values/log.ts'
import { operatorCommand } from '../../operator-command.ts'
import type { Io, Read } from '../terminal/io.ts'

/** Number of past reloads that are kept. */
const MAX_PAST = 50

export interface ReloadingOptions {
  readonly context: RuntimeEnvironment
  readonly read: (edited?: readonly EditedFile[]) => Promise<Pick<Read, 'configuration' | 'sinceMs'>>
  /** When the current configuration was read; changes since then are applied. */
  readonly sinceMs: number
  /** Registers the reload on SIGHUP. */
  readonly onHangup: Io['onHangup']
  readonly log: Log & { level: string }
  /** Called before a configuration is applied. The configuration is refused if it rejects. */
  readonly prepare?: (next: Configuration) => Promise<void>
}

export class Reloading implements Reloader, AsyncDisposable {
  readonly #running: Running
  readonly #context: RuntimeEnvironment
  readonly #read: ReloadingOptions['read']
  readonly #log: Log & { level: string }
  readonly #offHangup: () => void
  readonly #prepare: (next: Configuration) => Promise<void>
  #problems: readonly Problem[] = []
  #past: readonly PastReload[] = []
  #watching: Subscription | undefined
  /** Reloads run one after the other, in order. */
  #last: Promise<unknown> = Promise.resolve()

  constructor(running: Running, { context, read, sinceMs, onHangup, log, prepare = async () => undefined }: ReloadingOptions) {
    this.#prepare = prepare
    this.#running = running
    this.#context = context
    this.#read = read
    this.#log = log
    this.#offHangup = onHangup(() => void this.reload())
    this.#watch(running.configuration, sinceMs)
  }

  get problems(): readonly Problem[] {
    return this.#problems
  }

  get past(): readonly PastReload[] {
    return this.#past
  }

  reload(): Promise<ReloadEnd> {
    const done = this.#last.then(() => this.#apply())
    this.#last = done.catch(() => undefined)
    return done
  }

  /** Reads the files as a reload would, and applies nothing. */
  async plan(edited?: readonly EditedFile[]): Promise<PlanEnd> {
    try {
      const { configuration } = await this.#read(edited)
      return { kind: 'planned', plan: this.#planned(configuration) }
    } catch (error) {
      return { kind: 'refused', problems: problemsOf(error) }
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#offHangup()
    this.#watching?.unsubscribe()
    await this.#last
  }

  #watch(configuration: Configuration, sinceMs: number): void {
    this.#watching?.unsubscribe()
    this.#watching = configuration.watch
      ? watchConfiguration(configuration.files, configuration.globs, { sinceMs }).subscribe(
          () => void (configuration.confirm ? this.#announce() : this.reload()),
        )
      : undefined
  }

  /** With `reload.confirm`: logs that the files changed, or what is wrong with them; applies nothing. */
  async #announce(): Promise<void> {
    const end = await this.plan()
    this.#problems = end.kind === 'refused' ? end.problems : []
    if (end.kind === 'refused')
      this.#log.error({ problems: this.#problems.map(formatProblem) }, 'the new configuration cannot be used')
    else {
      const [show, apply] = ['plan', 'reload'].map((word) => operatorCommand(this.#running.configuration.named, word))
      this.#log.warn({}, `the configuration changed: ${show} shows the changes, ${apply} applies them`)
    }
  }

  async #apply(): Promise<ReloadEnd> {
    const before = this.#running.configuration
    await this.#running.reopen().catch((error: unknown) => {
      this.#log.error({ problems: problemsOf(error).map(formatProblem) }, 'a file cannot be reopened: the old one stays open')
    })
    try {
      const { configuration, sinceMs } = await this.#read()
      const plan = this.#planned(configuration)
      const { added, removed, changed, needsRestart } = diffConfigurations(before, configuration)
      const end = { kind: 'applied', added, removed, changed, needsRestart, plan } as const
      this.#problems = []
      if (isDeepStrictEqual(before, configuration)) return end
      await this.#prepare(configuration)
      await this.#running.apply(configuration, new Set(changed)).catch(async (error: unknown) => {
        await this.#prepare(before).catch(() => undefined)
        throw error
      })
      this.#log.level = configuration.log.level
      const isWatchedAlike = ['watch', 'confirm', 'files', 'globs'] as const
      if (!isWatchedAlike.every((key) => isDeepStrictEqual(before[key], configuration[key]))) this.#watch(configuration, sinceMs)
      for (const warning of configuration.warnings) if (!before.warnings.includes(warning)) this.#log.warn({}, warning)
      if (needsRestart.length > 0) this.#log.warn({ options: needsRestart }, 'these changes take effect after a restart')
      this.#log.info({ added, removed, changed }, 'configuration reloaded')
      this.#keep({ end: 'applied', added, removed, changed, entries: plan.entries.length, problems: [] })
      return end
    } catch (error) {
      this.#problems = problemsOf(error)
      this.#log.error({ problems: this.#problems.map(formatProblem) }, 'the new configuration is not applied')
      this.#keep({ end: 'refused', added: [], removed: [], changed: [], entries: 0, problems: this.#problems })
      return { kind: 'refused', problems: this.#problems }
    }
  }

  #keep(reload: Omit<PastReload, 'at'>): void {
    this.#past = [...this.#past, { at: new Date().toISOString(), ...reload }].slice(-MAX_PAST)
  }

  /** Throws `ConfigError` for a configuration that would be refused. */
  #planned(configuration: Configuration): Plan {
    return plannedWith(basisOf(this.#running, this.#context), configuration, this.#context.env)
  }
}
