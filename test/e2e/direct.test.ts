/** Every official host against every official server that speaks its transport, without a gateway: proves the fixtures. */
import { afterAll, beforeAll, describe } from 'vitest'
import type { HostKind } from '../support/hosts.ts'
import { startServer, stdioTarget } from '../support/processes.ts'
import type { ServerName, ServerProcess, Target } from '../support/processes.ts'
import { matrix } from './matrix.ts'

interface Pair {
  host: HostKind
  server: ServerName
  args: string[]
  expectEra: 'legacy' | 'modern'
}

const over = (transport: 'stdio' | 'sse' | 'http', server: ServerName, expectEra: Pair['expectEra'], era?: string) => ({
  server,
  expectEra,
  args: [transport, ...(era === undefined ? [] : ['--era', era]), '--pages'],
})

const pairs: Pair[] = [
  { host: 'sdk1 stdio', ...over('stdio', 'sdk1-server', 'legacy') },
  { host: 'sdk1 stdio', ...over('stdio', 'reference-server', 'legacy', 'dual') },
  { host: 'sdk1 stdio', ...over('stdio', 'reference-server', 'legacy', 'legacy') },
  { host: 'sdk1 sse', ...over('sse', 'sdk1-server', 'legacy') },
  { host: 'sdk1 http', ...over('http', 'sdk1-server', 'legacy') },
  { host: 'sdk1 http', ...over('http', 'reference-server', 'legacy', 'dual') },
  { host: 'sdk2 legacy http', ...over('http', 'sdk1-server', 'legacy') },
  { host: 'sdk2 legacy http', ...over('http', 'reference-server', 'legacy', 'legacy') },
  { host: 'sdk2 modern http', ...over('http', 'reference-server', 'modern', 'modern') },
  { host: 'sdk2 modern http', ...over('http', 'reference-server', 'modern', 'dual') },
  { host: 'sdk2 auto http', ...over('http', 'sdk1-server', 'legacy') },
  { host: 'sdk2 auto http', ...over('http', 'reference-server', 'legacy', 'legacy') },
  { host: 'sdk2 auto http', ...over('http', 'reference-server', 'modern', 'dual') },
  { host: 'sdk2 legacy stdio', ...over('stdio', 'reference-server', 'legacy', 'dual') },
  { host: 'sdk2 modern stdio', ...over('stdio', 'reference-server', 'modern', 'modern') },
  { host: 'sdk2 auto stdio', ...over('stdio', 'sdk1-server', 'legacy') },
  { host: 'sdk2 auto stdio', ...over('stdio', 'reference-server', 'modern', 'dual') },
]

describe.each(pairs)('$host directly to $server $args', ({ host, server, args, expectEra }) => {
  let target: Target
  let started: ServerProcess | undefined

  beforeAll(async () => {
    if (args[0] === 'stdio') {
      target = stdioTarget(server, ...args.slice(1))
      return
    }
    started = await startServer(server, ...args)
    target = { url: started.url }
  })
  afterAll(() => started?.[Symbol.asyncDispose]())

  matrix(host, () => target, { expectEra })
})
