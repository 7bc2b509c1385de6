/** The files of `deploy/`: their configurations load, and the proxies route as their comments say. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, onTestFinished, test, vi } from 'vitest'
import { parse, parseAllDocuments } from 'yaml'
import { loadConfiguration } from '../../src/config/load.ts'
import { describeWith } from '../support/programs.ts'
import { freePort } from '../support/free-port.ts'
import { listening } from '../support/listening.ts'

const read = (name: string): string => readFileSync(new URL(`../../deploy/${name}`, import.meta.url), 'utf8')
type Tree = Readonly<Record<string, unknown>>
/** What stands at a path of keys and indexes. */
const at = (tree: unknown, ...path: readonly (string | number)[]): unknown =>
  path.reduce((inner, key) => (inner as Tree | undefined)?.[key], tree)

let folder: string
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'trunkline-deploy-'))
})
afterAll(() => rmSync(folder, { recursive: true }))

const load = (text: string) => {
  const file = join(folder, 'trunkline.yaml')
  writeFileSync(file, text)
  const env = {
    POD_IP: '10.0.0.3',
    REPLICA: 'one',
    TRUNKLINE_KEY: '0123456789abcdef'.repeat(4),
    TOKEN_HASH: `sha256:${'ab'.repeat(32)}`,
  }
  return loadConfiguration({ files: [file] }, { env, cwd: folder, home: folder })
}

describe('kubernetes.yaml', () => {
  const documents = parseAllDocuments(read('kubernetes.yaml')).map((document) => {
    expect(document.errors).toEqual([])
    return document.toJS() as Tree
  })
  const one = (kind: string): Tree => documents.find((document) => String(document['kind']) === kind) as Tree

  test('F-22 gives a replica the time it takes to stop, and probes the paths that answer', async () => {
    const { host, store, replicaUrl } = await load(String(at(one('ConfigMap'), 'data', 'trunkline.yaml')))
    const pod = at(one('Deployment'), 'spec', 'template', 'spec')
    expect(Number(at(pod, 'terminationGracePeriodSeconds')) * 1_000).toBeGreaterThan(host.drainMs)
    expect(at(pod, 'containers', 0, 'readinessProbe', 'httpGet', 'path')).toBe('/readyz')
    expect(at(pod, 'containers', 0, 'livenessProbe', 'httpGet', 'path')).toBe('/healthz')
    expect([store?.urls, replicaUrl]).toEqual([['redis://valkey:6379'], 'http://10.0.0.3:7420'])
  })

  test('keeps two replicas through a disruption, has no stickiness, and scales by a metric that there is', () => {
    expect(at(one('PodDisruptionBudget'), 'spec', 'minAvailable')).toBe(2)
    expect(at(one('Service'), 'spec')).not.toHaveProperty('sessionAffinity')
    const metric = at(one('HorizontalPodAutoscaler'), 'spec', 'metrics', 0, 'pods', 'metric', 'name')
    const source = readFileSync(new URL('../../src/admin/state/metrics.ts', import.meta.url), 'utf8')
    expect(source).toContain(`'${String(metric)}'`)
  })
})

test('compose.yaml starts three replicas of a configuration that loads', async () => {
  const { services, configs } = parse(read('compose.yaml'), { merge: true }) as { services: Tree; configs: Tree }
  expect(Object.keys(services)).toEqual(expect.arrayContaining(['one', 'two', 'three', 'valkey', 'nginx']))
  const { replicaUrl, stateKeys } = await load(String(at(configs, 'trunkline', 'content')).replaceAll('$$', '$'))
  expect([replicaUrl, stateKeys.length]).toEqual(['http://one:7420', 1])
  for (const name of ['one', 'two', 'three']) expect(at(services, name, 'environment', 'REPLICA')).toBe(name)
})

test('envoy.yaml routes by both headers, and ends no stream by a time-out of its route', () => {
  const { static_resources: all } = parse(read('envoy.yaml')) as { static_resources: Tree }
  const text = JSON.stringify(all)
  for (const header of ['mcp-method', 'mcp-name']) expect(text).toContain(`"name":"${header}"`)
  expect(text.match(/"route":\{/g)).toHaveLength(text.match(/"timeout":"0s"/g)?.length ?? 0)
  expect([0, 1].map((index) => at(all, 'clusters', index, 'name'))).toEqual(['trunkline', 'slow'])
})

describe.each([
  [
    'nginx',
    'nginx.conf',
    (file: string) => ['-c', file, '-e', join(folder, 'log'), '-g', `daemon off; pid ${join(folder, 'pid')};`],
  ],
  ['haproxy', 'haproxy.cfg', (file: string) => ['-db', '-f', file]],
] as const)('%s', (program, name, args) => {
  describeWith([program], name, () => {
    test('sends calls of slow tools to their pool, by the headers of modern hosts, and all else to all replicas in turn', async () => {
      await using replicas = new AsyncDisposableStack()
      const ports: number[] = []
      for (const replica of ['one', 'two', 'three']) {
        const server = createServer((_request, answer) => answer.end(replica))
        ports.push(replicas.use(await listening(server)).port)
      }
      const port = await freePort()
      const text = ['one', 'two', 'three']
        .reduce(
          (config, replica, at) =>
            config.replace(new RegExp(`${replica}:7420|127\\.0\\.0\\.1:742${at + 1}`, 'g'), `127.0.0.1:${ports[at]}`),
          read(name),
        )
        .replace(/listen 8080|bind :8080/, (line) => line.replace(/:?8080/, `127.0.0.1:${port}`))
      const file = join(folder, name)
      writeFileSync(file, text)
      const proxy = spawn(program, args(file), { stdio: 'ignore' })
      const exited = once(proxy, 'exit')
      // Not by SIGKILL: the workers of nginx would stay.
      onTestFinished(async () => {
        proxy.kill('SIGTERM')
        await exited
      })
      const ask = async (headers: Record<string, string>): Promise<string> =>
        (await fetch(`http://127.0.0.1:${port}/mcp`, { method: 'POST', body: '{}', headers })).text()
      const named = (tool: string) => ({ 'mcp-method': 'tools/call', 'mcp-name': tool })
      await vi.waitFor(async () => expect(await ask(named('reports__year'))).toBe('three'), 10_000)
      for (let at = 0; at < 3; at++) expect(await ask(named('reports__year'))).toBe('three')
      const others = new Set<string>()
      for (const headers of [named('files__read'), named('files__read'), {}, {}, { 'mcp-method': 'tools/list' }])
        others.add(await ask(headers))
      expect(others).toEqual(new Set(['one', 'two']))
    })
  })
})
