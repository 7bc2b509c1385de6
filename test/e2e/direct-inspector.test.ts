/** The Inspector's command line directly against the test servers: proves its driver. */
import { afterAll, beforeAll, describe } from 'vitest'
import type { InspectorEra } from '../support/inspector.ts'
import { startServer, stdioTarget } from '../support/processes.ts'
import type { ServerProcess, Target } from '../support/processes.ts'
import { inspectorSuite } from './inspector-suite.ts'

const transports = [
  { over: 'stdio', server: 'reference-server', eras: ['legacy', 'auto', 'modern'] },
  { over: 'http', server: 'reference-server', eras: ['legacy', 'auto', 'modern'] },
  { over: 'sse', server: 'sdk1-server', eras: ['legacy', 'auto'] },
] as const
const cells = transports.flatMap(({ over, server, eras }) => eras.map((era: InspectorEra) => ({ over, server, era })))

describe.each(cells)('the Inspector over $over in era $era', ({ over, server, era }) => {
  let target: Target
  let started: ServerProcess | undefined
  beforeAll(async () => {
    if (over !== 'stdio') started = await startServer(server, over, '--pages')
    target = started === undefined ? stdioTarget(server, '--pages') : { url: started.url }
  })
  afterAll(() => started?.[Symbol.asyncDispose]())

  inspectorSuite(() => target, era)
})
