/** The Inspector's command line directly against the test servers: proves its driver. */
import { afterAll, beforeAll, describe } from 'vitest'
import type { InspectorEra } from '../support/inspector.ts'
import { startServer, stdioTarget } from '../support/processes.ts'
import type { ServerName, ServerProcess, Target } from '../support/processes.ts'
import { inspectorSuite } from './inspector-suite.ts'

/** Each transport and each era once: every pair is driven through the gateway. */
const cells: readonly { over: 'stdio' | 'http' | 'sse'; server: ServerName; era: InspectorEra }[] = [
  { over: 'stdio', server: 'reference-server', era: 'legacy' },
  { over: 'http', server: 'reference-server', era: 'modern' },
  { over: 'sse', server: 'sdk1-server', era: 'auto' },
]

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
