/**
 * `gateway.ts CONFIG`: a gateway as `trunkline up` runs it, but one that tries lost servers again at once, so that a run of
 * thousands of faults need not wait for its back-off. SIGHUP reads the file again, SIGTERM ends it.
 */
import { startGateway } from '../../../src/app.ts'
import { Reloading } from '../../../src/commands/serve/reloading.ts'
import { loadConfiguration } from '../../../src/config/load.ts'
import { readRuntimeEnvironment } from '../../../src/config/runtime-environment.ts'
import { DEFAULT_BACKOFF } from '../../../src/downstream/pacing/backoff.ts'
import { createLog } from '../../../src/log.ts'

const [file = ''] = process.argv.slice(2)
const context = readRuntimeEnvironment({ listen: '127.0.0.1:0' })
const load = () => loadConfiguration({ files: [file] }, context)
const log = createLog({ level: 'error', format: 'json' }, process.stderr)
const running = await startGateway(await load(), {
  log,
  path: process.env['PATH'],
  backoff: { ...DEFAULT_BACKOFF, firstMs: 20, maxMs: 200, minRetryMs: 20, maxCrashes: Infinity },
})
const read = async () => ({ configuration: await load(), sinceMs: Date.now() })
const onHangup = (callback: () => void): (() => void) => {
  process.on('SIGHUP', callback)
  return () => void process.off('SIGHUP', callback)
}
const reloading = new Reloading(running, { context, read, sinceMs: Date.now(), onHangup, log })
process.on(
  'SIGTERM',
  () =>
    void reloading[Symbol.asyncDispose]()
      .then(() => running.stop())
      .then(() => process.exit(0)),
)
process.stderr.write(`trunkline is ready: http://127.0.0.1:${running.front.addresses.tcp[0]?.port}/mcp\n`)
