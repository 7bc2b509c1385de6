/** Metrics as a Prometheus reads them, and the files beside docs/metrics.md. */
import { execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { expect, test } from 'vitest'
import { exchange, openAdmin, openLink } from '../../support/admin.ts'
import { commandLine } from '../../support/cli.ts'
import type { Cli } from '../../support/cli.ts'
import { describeWith } from '../../support/programs.ts'
import { freePort } from '../../support/free-port.ts'

const FILES = fileURLToPath(new URL('../../../docs/prometheus/', import.meta.url))
const PAGE = readFileSync(new URL('../../../docs/metrics.md', import.meta.url), 'utf8')

const serving = async (): Promise<Cli> => {
  const cli = await commandLine()
  await cli.write('trunkline.yaml', `admin: { bind: "127.0.0.1:0" }\nservers:\n  one: ${cli.fake()}\n`)
  await cli.up()
  await openAdmin(cli)
  for (const args of [['one__echo', 'text=x'], ['one__echo', 'text=y'], ['one__fail']]) await cli.here('call', ...args)
  return cli
}

test('T-37 metrics take an operator’s token, and have a path of their own', async () => {
  await using cli = await serving()
  const { origin, ask } = await openAdmin(cli)
  expect((await exchange(origin, 'GET', '/metrics')).status).toBe(401)
  const { headers, text } = await ask('GET', '/metrics')
  expect(headers['content-type']).toBe('text/plain; version=0.0.4; charset=utf-8')
  expect(text).toContain('trunkline_calls_total{server="one",tool="one__echo",method="tools/call",outcome="ok",era="modern"} 2\n')
  expect(text).toContain('outcome="tool_error",era="modern"} 1\n')
  expect(text).toContain('trunkline_server_state{server="one",state="healthy"} 1\n')
  expect(text).toContain('trunkline_limit_reached_total{option="limits.queue",server=""} 0\n')
  // A series that begins with 1 has no increase: the alert would miss the first time that a limit of a server is reached.
  expect(text).toContain('trunkline_limit_reached_total{option="limits.queue",server="one"} 0\n')
  expect(text).not.toContain(' # {')
})

test('as OpenMetrics each bucket that was hit names a call', async () => {
  await using cli = await serving()
  const { ask } = await openAdmin(cli)
  const { headers, text } = await ask('GET', '/metrics', undefined, {
    Accept: 'application/openmetrics-text;version=1.0.0,*/*;q=0.1',
  })
  expect(headers['content-type']).toContain('application/openmetrics-text')
  expect(text.endsWith('# EOF\n')).toBe(true)
  for (const accept of [
    'text/plain;version=0.0.4;q=0.6,application/openmetrics-text;version=1.0.0;q=0.5,*/*;q=0.1',
    'application/openmetrics-text;q=0, */*',
  ])
    expect((await ask('GET', '/metrics', undefined, { Accept: accept })).headers['content-type']).toContain('text/plain')
  const id = /trunkline_call_duration_seconds_bucket\{[^}]*tool="one__echo"[^}]*\} \d+ # \{call="(\d+)"\}/.exec(text)?.[1]
  expect((await ask('GET', `/api/calls/${id}`)).json).toMatchObject({ name: 'one__echo' })
})

test('every metric and every alert is on the page', async () => {
  await using cli = await serving()
  const { ask } = await openAdmin(cli)
  const { text } = await ask('GET', '/metrics')
  const names = [...text.matchAll(/^# TYPE (\S+)/gm)].map(([, name]) => name ?? '')
  expect(names.length).toBeGreaterThan(15)
  expect(names.filter((name) => !PAGE.includes(name))).toEqual([])
  const alerts = [...readFileSync(join(FILES, 'alerts.yaml'), 'utf8').matchAll(/alert: (\w+)/g)].map(([, name]) => name ?? '')
  expect(alerts.filter((name) => !PAGE.includes(`### ${name}\n`))).toEqual([])
  const panels = readFileSync(join(FILES, 'grafana.json'), 'utf8')
  const shown = [...panels.matchAll(/trunkline_[a-z_]+/g)].map(([name]) => name.replace(/_bucket$/, ''))
  expect([...new Set(shown)].filter((name) => !text.includes(name) && !PAGE.includes(name))).toEqual([])
})

describeWith(['prometheus'], 'a Prometheus', () => {
  test('promtool finds nothing wrong with the metrics, the alerts and their tests', async () => {
    await using cli = await serving()
    const { ask } = await openAdmin(cli)
    const { text } = await ask('GET', '/metrics')
    const checked = execFileSync('promtool', ['check', 'metrics'], {
      input: text,
      encoding: 'utf8',
      stdio: ['pipe', 'pipe', 'pipe'],
    })
    expect(checked).toBe('')
    execFileSync('promtool', ['check', 'rules', 'alerts.yaml'], { cwd: FILES, stdio: 'pipe' })
    expect(
      execFileSync('promtool', ['test', 'rules', 'alerts.test.yaml'], { cwd: FILES, encoding: 'utf8', stdio: 'pipe' }),
    ).toContain('SUCCESS')
  })

  test('scrapes it with the token of the file, and every rule can be evaluated', async () => {
    await using cli = await serving()
    const { origin, tokenFile } = await openLink(cli)
    const folder = mkdtempSync(join(tmpdir(), 'tl-prometheus-'))
    const port = await freePort()
    const configuration = readFileSync(join(FILES, 'prometheus.yaml'), 'utf8')
      .replace('15s', '200ms')
      .replace('alerts.yaml', join(FILES, 'alerts.yaml'))
      .replace('127.0.0.1:7421', new URL(origin).host)
      .replace('admin-token', tokenFile)
    writeFileSync(join(folder, 'prometheus.yaml'), configuration)
    const child = spawn(
      'prometheus',
      [
        `--config.file=${join(folder, 'prometheus.yaml')}`,
        `--storage.tsdb.path=${join(folder, 'data')}`,
        `--web.listen-address=127.0.0.1:${port}`,
      ],
      { stdio: 'ignore' },
    )
    const exited = once(child, 'exit')
    try {
      const value = await until(() => query(port, 'sum(trunkline_calls_total{server="one"})'))
      expect(value).toBe('3')
      expect(await query(port, 'up{job="trunkline"}')).toBe('1')
      expect(await query(port, 'count(trunkline_call_duration_seconds_bucket{tool="one__echo",le="+Inf"})')).toBe('1')
    } finally {
      child.kill('SIGTERM')
      await exited
      rmSync(folder, { recursive: true, force: true })
    }
  })
})

const query = async (port: number, expression: string): Promise<string | undefined> => {
  try {
    const response = await fetch(`http://127.0.0.1:${port}/api/v1/query?query=${encodeURIComponent(expression)}`)
    const { data } = (await response.json()) as { data?: { result?: { value: [number, string] }[] } }
    return data?.result?.[0]?.value[1]
  } catch {
    return undefined
  }
}

const until = async (look: () => Promise<string | undefined>): Promise<string> => {
  for (;;) {
    const found = await look()
    if (found !== undefined) return found
    await sleep(100)
  }
}
