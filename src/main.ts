#!/usr/bin/env node
/** The program: the only place that exits and that hears signals. */
import { run } from './cli.ts'

const interrupt = new AbortController()
const hurry = new AbortController()

/** The first signal asks to end, the second to end now (F-22). */
const onSignal = (): void => {
  if (interrupt.signal.aborted) hurry.abort()
  interrupt.abort()
}
process.on('SIGTERM', onSignal)
process.on('SIGINT', onSignal)
hurry.signal.addEventListener('abort', () => process.exit(130))

// Who reads us may leave early (`trunkline tools | head -1`); what happens then is decided where it is written.
for (const stream of [process.stdout, process.stderr]) stream.on('error', () => undefined)

process.exitCode = await run(process.argv.slice(2), {
  stdin: process.stdin,
  stdout: process.stdout,
  stderr: process.stderr,
  interrupted: interrupt.signal,
  onHangup: (callback) => {
    process.on('SIGHUP', callback)
    return () => process.off('SIGHUP', callback)
  },
})
process.exit()
