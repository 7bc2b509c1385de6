/** `telemetry.otlp` as options: every key, what an empty endpoint means, what is refused, and what is secret. */
import { expect, test } from 'vitest'
import { loadConfiguration } from '../../../src/config/load.ts'
import { DEFAULT_TRACING } from '../../../src/tracing/options.ts'

const load = (otlp: object, env: Readonly<Record<string, string>> = {}) =>
  loadConfiguration({ files: [], value: { telemetry: { otlp } } }, { env, cwd: '/', home: '/' })

test('every key becomes an option', async () => {
  const { tracing, secrets } = await load({
    endpoint: 'https://collector.example.com/otlp',
    protocol: 'grpc',
    headers: { Authorization: 'Bearer hush-hush' },
    traces: 0.25,
    errors: false,
    metrics: false,
    metrics_interval: '5s',
    delay: '1s',
    timeout: '2s',
    max_queued: 10,
    capture_arguments: true,
    service_name: 'ours',
    attributes: { 'deployment.environment.name': 'staging' },
  })
  expect(tracing).toEqual({
    endpoint: new URL('https://collector.example.com/otlp'),
    protocol: 'grpc',
    headers: { Authorization: 'Bearer hush-hush' },
    rate: 0.25,
    errors: false,
    metrics: false,
    metricsIntervalMs: 5_000,
    delayMs: 1_000,
    timeoutMs: 2_000,
    maxQueued: 10,
    captureArguments: true,
    serviceName: 'ours',
    attributes: { 'deployment.environment.name': 'staging' },
  })
  expect(secrets).toContain('Bearer hush-hush')
})

test('an endpoint that is not named, or whose variable is not set, is no tracing at all', async () => {
  expect((await load({})).tracing).toBeUndefined()
  expect((await load({ endpoint: '${OTEL_EXPORTER_OTLP_ENDPOINT:-}' })).tracing).toBeUndefined()
  const { tracing } = await load({ endpoint: '${OTEL:-}', traces: '${RATE}' }, { OTEL: 'http://127.0.0.1:4318', RATE: '0.5' })
  expect(tracing).toEqual({ ...DEFAULT_TRACING, endpoint: new URL('http://127.0.0.1:4318'), rate: 0.5 })
})

test.each([
  [{ endpoint: 'localhost:4318' }, /endpoint: expected a URL such as/],
  [{ endpoint: 'http://user:pass@collector' }, /endpoint: expected a URL .* credentials belong in headers/],
  [{ endpoint: 'http://c', traces: 10 }, /traces: expected a number from 0 to 1/],
  [{ endpoint: 'http://c', protocol: 'http/json' }, /protocol: expected one of http\/protobuf, grpc/],
  [{ endpoint: 'http://c', delay: 5 }, /delay: expected a duration/],
] as const)('%o is refused', async (otlp, words) => {
  await expect(load(otlp)).rejects.toThrow(words)
})
