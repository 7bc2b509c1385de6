/** What releases are made from agrees with the package: versions, hosts, links, and what containers and units promise. */
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { parse } from 'yaml'
import { fillTemplates } from '../../scripts/packaging.ts'
import { readServerJson } from '../../src/install/server-json.ts'
import { HOSTS } from '../../src/host-files/hosts.ts'

const ROOT = join(import.meta.dirname, '../..')
const read = (file: string): string => readFileSync(join(ROOT, file), 'utf8')
const { version, engines } = JSON.parse(read('package.json')) as {
  version: string
  engines: { node: string }
}

describe('templates', () => {
  const filled = fillTemplates((platform) => `digest-of-${platform}`)

  test('are filled with the version and the digests, and nothing is left open', () => {
    expect([...filled.keys()]).toEqual(['trunkline.rb', 'trunkline.json', 'manifest.json'])
    for (const [name, text] of filled) {
      expect(text, name).not.toMatch(/@[A-Z]/)
      expect(text, name).toContain(version)
    }
    expect(filled.get('trunkline.rb')).toContain('sha256 "digest-of-darwin-arm64"')
    expect(JSON.parse(filled.get('trunkline.json') ?? '')).toMatchObject({
      version,
      architecture: { '64bit': { hash: 'digest-of-win32-x64' } },
    })
  })

  test('the bundle starts the program that the package has, on the Node that it needs', () => {
    const manifest = JSON.parse(filled.get('manifest.json') ?? '') as {
      server: { entry_point: string; mcp_config: { args: string[] } }
      compatibility: { runtimes: { node: string } }
    }
    expect(manifest.server.entry_point).toBe('dist/main.js')
    expect(manifest.server.mcp_config.args.slice(1)).toEqual(['stdio', '-c', '${user_config.configuration}'])
    expect(manifest.compatibility.runtimes.node).toBe(engines.node)
  })
})

test('server.json names this version of the package, and the words it is started with', () => {
  // As `trunkline add ./server.json` reads it.
  expect(readServerJson(read('server.json'), 'server.json')).toMatchObject({ version })
  const entry = JSON.parse(read('server.json')) as {
    version: string
    name: string
    description: string
    packages: { identifier: string; version: string; packageArguments: { type: string; name?: string }[] }[]
  }
  // What the registry refuses (schema 2025-12-11): other names, longer descriptions, ranges of versions.
  expect(entry.name).toMatch(/^[a-zA-Z0-9.-]+\/[a-zA-Z0-9._-]+$/)
  expect(entry.description.length).toBeLessThanOrEqual(100)
  expect(entry.version).toMatch(/^\d+\.\d+\.\d+$/)
  // A named argument is written as `name=value`, which a short option does not take.
  for (const { type, name } of entry.packages.flatMap(({ packageArguments }) => packageArguments))
    if (type === 'named') expect(name).toMatch(/^--/)
  expect(entry.version).toBe(version)
  expect(entry.packages).toMatchObject([{ identifier: 'trunkline', version, transport: { type: 'stdio' } }])
})

test('llms.txt names every host, and its links lead somewhere', () => {
  const text = read('llms.txt')
  for (const host of Object.keys(HOSTS)) expect(text).toMatch(new RegExp(`\\b${host}\\b`))
  const links = [...text.matchAll(/\]\(([^)]+)\)/g)].map(([, target = '']) => target)
  expect(links.length).toBeGreaterThan(5)
  expect(links.filter((target) => !existsSync(join(ROOT, target)))).toEqual([])
})

test('the container runs without root, has a health check and a folder to write to, and copies what the build context lets in', () => {
  const text = read('packaging/container/Containerfile')
  expect(text).toMatch(/^USER node$/m)
  // A probe of /readyz would make every stop wait for proxies (`reload.lame_duck`), longer than `docker stop` does.
  expect(text).toMatch(/^HEALTHCHECK [^]*\/healthz/m)
  // node as process 1 does not wait for processes that servers leave behind.
  expect(text).toMatch(/apt-get install [^]*\btini\b[^]*^ENTRYPOINT \["tini", "--", "trunkline"\]$/m)
  expect(text).toMatch(/^VOLUME \/data$/m)
  // What the build writes is not executable, and the image starts it by its name.
  expect(text).toMatch(/^RUN chmod 755 (\S+) && ln -s \1 \/usr\/local\/bin\/trunkline$/m)
  const allowed = read('.dockerignore')
    .split('\n')
    .flatMap((line) => (line.startsWith('!') ? [line.slice(1)] : []))
  const copied = [...text.matchAll(/^COPY (?!--from)(.+) \S+$/gm)].flatMap(([, names = '']) => names.split(' '))
  expect(copied.toSorted()).toEqual(allowed.toSorted())
})

test('the systemd service stops in the time that a drain takes, and sends what the program understands', () => {
  const unit = read('packaging/systemd/trunkline.service')
  expect(unit).toContain('TimeoutStopSec=30')
  expect(unit).toContain('kill -HUP')
  expect(unit).toContain('KillMode=mixed')
})

test('workflows parse, give no more rights than they use, and build every platform that the templates name', () => {
  const workflows = readdirSync(join(ROOT, '.github/workflows'))
  for (const file of workflows)
    expect(parse(read(`.github/workflows/${file}`)), file).toMatchObject({ permissions: { contents: 'read' } })
  const named = [...read('packaging/homebrew/trunkline.rb').matchAll(/@SHA256:([\w-]+)@/g)].map(([, platform]) => platform)
  const release = read('.github/workflows/release.yml')
  for (const platform of named) expect(release).toContain(`platform: ${platform}`)
  expect(release).toContain('node scripts/sbom.ts')
  expect(release).toContain('--provenance')
})
