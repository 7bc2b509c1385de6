/** Reads the configuration again when its files change or SIGHUP comes; a bad one changes nothing and says why. */
import { debounceTime, exhaustMap, Subject } from 'rxjs'
import type { Running } from '../app.ts'
import { diffConfigurations } from '../config/difference.ts'
import type { Configuration } from '../config/options.ts'
import { ConfigError } from '../config/problems.ts'
import { watchConfiguration } from '../config/watch.ts'
import type { Log } from '../downstream/environment.ts'
import type { Io } from './io.ts'

/** Applies what `read` returns to a running gateway, from now until disposed. */
export const reloading = (running: Running, read: () => Promise<Configuration>, io: Io, log: Log): AsyncDisposable => {
  let current = running.configuration
  const wanted$ = new Subject<void>()
  let watching = watch(current)
  const applied = wanted$
    .pipe(
      debounceTime(50),
      exhaustMap(() => apply()),
    )
    .subscribe()
  const offHangup = io.onHangup(() => wanted$.next())

  function watch(configuration: Configuration) {
    return configuration.watch
      ? watchConfiguration(configuration.files, configuration.globs).subscribe(() => wanted$.next())
      : undefined
  }

  async function apply(): Promise<void> {
    try {
      const next = await read()
      const { added, removed, changed, listeners, needsRestart } = diffConfigurations(current, next)
      running.apply(next, new Set(changed))
      const asks = [...needsRestart, ...(listeners ? ['listen'] : [])]
      if (asks.length > 0) log.warn({ options: asks }, 'these changes take effect after a restart')
      log.info({ added, removed, changed }, 'configuration reloaded')
      current = next
      watching?.unsubscribe()
      watching = watch(next)
    } catch (error) {
      if (!(error instanceof ConfigError)) throw error
      log.error(
        { problems: error.problems.map(({ place, message }) => `${place} ${message}`) },
        'the new configuration is not used',
      )
    }
  }

  return {
    async [Symbol.asyncDispose]() {
      offHangup()
      watching?.unsubscribe()
      applied.unsubscribe()
    },
  }
}
