/** Exports to a collector over HTTP: where they go, and that those that fail are reported. */
import { createServer } from 'node:http'
import { expect, onTestFinished, test } from 'vitest'
import { loadExporters } from '../../../src/tracing/exporters.ts'
import { listening } from '../../support/listening.ts'

/** A collector that answers with this status, and what it was sent. */
const collectorThat = async (status: number) => {
  const got: unknown[] = []
  const server = createServer((request, response) => {
    got.push([request.url, request.headers['x-key']])
    response.writeHead(status).end()
  })
  const opened = await listening(server)
  onTestFinished(() => opened[Symbol.asyncDispose]())
  return { got, url: opened.url }
}

test.each([
  ['', ''],
  ['/', ''],
  ['/base', '/base'],
  ['/base/', '/base'],
])('below %j each signal has its path', async (path, base) => {
  const { got, url } = await collectorThat(200)
  const failures: unknown[] = []
  const log = { info: () => undefined, warn: (facts: object) => void failures.push(facts) }
  const exporters = await loadExporters(
    { endpoint: new URL(`${url}${path}`), protocol: 'http/protobuf', headers: { 'x-key': 'k' }, timeoutMs: 5_000 },
    log,
  )
  const code = await new Promise<number>((resolve) => exporters.spans.export([], (result) => resolve(result.code)))
  expect([code, failures, got]).toEqual([0, [], [[`${base}/v1/traces`, 'k']]])
  await exporters.spans.shutdown()
})

test('an export that is refused is reported, and so to its caller', async () => {
  const { url } = await collectorThat(400)
  const failures: unknown[] = []
  const log = { info: () => undefined, warn: (facts: object) => void failures.push(facts) }
  const target = { endpoint: new URL(url), protocol: 'http/protobuf', headers: {}, timeoutMs: 5_000 } as const
  const { spans } = await loadExporters(target, log)
  const result = await new Promise<{ code: number; error?: Error }>((resolve) => spans.export([], resolve))
  expect(result.code).toBe(1)
  expect(failures).toEqual([{ endpoint: url, error: result.error?.message }])
  expect(result.error).toBeInstanceOf(Error)
  await spans.shutdown()
})
