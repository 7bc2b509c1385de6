/**
 * `npm run opa`: a real Open Policy Agent with the policy of `examples/policy`. Builds the program (a Go module, several minutes of CPU
 * once on a machine, which is why no test does), lets a gateway ask it, and keeps the exchange in exchange.json.
 */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { isDeepStrictEqual } from 'node:util'
import { fileURLToPath } from 'node:url'
import { madeFrom, makeOnce, run } from '../languages.ts'
import { play, SEEN, withoutTime } from './scene.ts'
import type { Exchanged } from './scene.ts'

const HERE = fileURLToPath(new URL('.', import.meta.url))
const POLICY = fileURLToPath(new URL('../../../examples/policy/trunkline.rego', import.meta.url))
const VERSION = readFileSync(join(HERE, 'version'), 'utf8').trim()
const START_MS = 30_000

/** `OPA` names a program that is there already. */
const program = async (): Promise<string> => {
  const given = process.env['OPA']
  if (given !== undefined) return given
  const folder = madeFrom('opa', 'opa/version')
  await makeOnce(folder, async () => {
    await run('go', ['install', `github.com/open-policy-agent/opa@${VERSION}`], {
      env: { ...process.env, GOBIN: folder, GOFLAGS: '' },
    })
  })
  return join(folder, 'opa')
}

const portOf = (server: { address(): unknown }): number => (server.address() as AddressInfo).port

const probe = createServer().listen(0, '127.0.0.1')
await once(probe, 'listening')
const port = portOf(probe)
probe.close()

const opa = spawn(
  await program(),
  ['run', '--server', '--log-level', 'error', '--addr', `127.0.0.1:${port}`, '--disable-telemetry', POLICY],
  {
    stdio: ['ignore', 'ignore', 'inherit'],
  },
)
const origin = `http://127.0.0.1:${port}`
const exchanged: Exchanged[] = []
const recorder = createServer((request, response) => {
  const chunks: Buffer[] = []
  request.on('data', (chunk: Buffer) => chunks.push(chunk))
  request.on('end', () => {
    const body = Buffer.concat(chunks).toString()
    void fetch(`${origin}${request.url}`, { method: 'POST', headers: { 'content-type': 'application/json' }, body }).then(
      async (reply) => {
        const text = await reply.text()
        exchanged.push({ input: withoutTime(body), answer: JSON.parse(text) })
        response.writeHead(reply.status, { 'content-type': 'application/json' }).end(text)
      },
    )
  })
}).listen(0, '127.0.0.1')
await once(recorder, 'listening')
try {
  const startedMs = performance.now()
  while (
    !(await fetch(`${origin}/health`).then(
      ({ ok }) => ok,
      () => false,
    ))
  ) {
    if (performance.now() - startedMs > START_MS) throw new Error('opa does not answer /health')
    await pause(100)
  }
  const seen = await play(new URL(`http://127.0.0.1:${portOf(recorder)}/v1/data/trunkline`))
  for (const [at, text] of SEEN.entries()) console.log(`${seen[at] === text ? 'ok ' : 'FAIL'} ${seen[at]}`)
  process.exitCode = isDeepStrictEqual(seen, SEEN) ? 0 : 1
  writeFileSync(join(HERE, 'exchange.json'), `${JSON.stringify({ version: VERSION, exchanged }, null, 2)}\n`)
} finally {
  opa.kill()
  recorder.closeAllConnections()
  recorder.close()
}
