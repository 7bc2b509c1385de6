/** The single executable, in a folder without Node, npm or any variable of the environment. */
import { execFile } from 'node:child_process'
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { startTrunkline } from '../../examples/run.ts'
import { packagesIn } from '../../scripts/bundle.ts'
import { buildExecutable } from '../../scripts/executable.ts'
import { connectHost } from '../support/hosts.ts'

const { version } = JSON.parse(readFileSync(new URL('../../package.json', import.meta.url), 'utf8')) as { version: string }
const run = promisify(execFile)

describe('the single executable', () => {
  let folder: string
  let file: string
  beforeAll(async () => {
    folder = mkdtempSync(join(tmpdir(), 'trunkline-executable-'))
    const built = await buildExecutable(join(folder, 'built'))
    // Away from the checkout, with nothing beside it but the dashboard.
    mkdirSync(join(folder, 'bin'))
    cpSync(dirname(built), join(folder, 'bin'), { recursive: true })
    rmSync(join(folder, 'built'), { recursive: true })
    file = join(folder, 'bin', 'trunkline')
  }, 300_000)
  afterAll(() => rmSync(folder, { recursive: true, force: true }))

  const alone = (...words: string[]) => run(file, words, { cwd: folder, env: {} })

  test('says its version, and enters itself in the file of a host', async () => {
    expect((await alone('--version')).stdout.trim()).toBe(version)
    writeFileSync(join(folder, 'trunkline.yaml'), 'servers: {}\n', { mode: 0o600 })
    const { stdout } = await run(file, ['connect', 'cursor', '--print'], { cwd: folder, env: { HOME: folder } })
    expect(JSON.parse(stdout)).toMatchObject({ mcpServers: { trunkline: { command: file } } })
  })

  test('has the licences of Node and of the packages in it beside it', () => {
    const beside = (name: string): string => readFileSync(join(folder, 'bin', name), 'utf8')
    expect(packagesIn(beside('THIRD-PARTY-LICENSES.txt')).map((one) => one.slice(0, one.lastIndexOf('@')))).toEqual(
      expect.arrayContaining(['undici', 'rxjs', '@opentelemetry/api', 'ioredis', 'preact']),
    )
    expect(beside('NODE-LICENSE.txt')).toMatch(/^Node\.js is licensed for use as follows:/)
  })

  test('serves hosts of both eras and the dashboard', async () => {
    mkdirSync(join(folder, 'run'), { mode: 0o700 })
    const env = { HOME: folder, XDG_RUNTIME_DIR: join(folder, 'run') }
    const config = join(folder, 'serving.yaml')
    const yaml = `servers:\n  self: { command: ${JSON.stringify(file)}, args: [stdio, -c, empty.yaml], env: { HOME: ${JSON.stringify(folder)} } }\nadmin: { bind: 127.0.0.1:0 }\n`
    writeFileSync(config, yaml, { mode: 0o600 })
    writeFileSync(join(folder, 'empty.yaml'), 'servers: {}\n', { mode: 0o600 })
    await using trunkline = await startTrunkline(config, { command: [file], cwd: folder, env })
    await using host = await connectHost('sdk2 auto http', { url: trunkline.url.href })
    expect(host.era).toBe('modern')
    await host.close()
    const { stdout } = await run(file, ['open', '--json', '-c', config], { cwd: folder, env })
    const { origin } = JSON.parse(stdout) as { origin: string }
    expect(await (await fetch(origin)).text()).toMatch(/<script type="module"/)
    expect(await trunkline.stop()).toBe(0)
  })
})
