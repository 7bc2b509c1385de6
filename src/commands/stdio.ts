/** `trunkline stdio`: one host on stdin and stdout. stdout carries nothing but the protocol. */
import { startGateway } from '../app.ts'
import type { Configuration } from '../config/options.ts'
import type { Context } from '../config/surroundings.ts'
import { createLog } from '../log.ts'
import { EXIT } from './io.ts'
import type { Io } from './io.ts'

export const stdio = async (configuration: Configuration, context: Context, io: Io): Promise<number> => {
  const log = createLog(configuration.log, io.stderr)
  for (const warning of configuration.warnings) log.warn({}, warning)
  await using running = await startGateway(configuration, {
    log,
    path: context.env['PATH'],
    pipe: { input: io.stdin, output: io.stdout },
  })
  const interrupted = new Promise<void>((resolve) => io.interrupted.addEventListener('abort', () => resolve(), { once: true }))
  await Promise.race([running.hostLeft, interrupted])
  await running.stop()
  return EXIT.ok
}
