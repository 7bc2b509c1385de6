/**
 * What the pages show is true: marked command lines run against the demo as they stand, configurations load, other JSON is JSON,
 * and links lead somewhere. `<!-- test: run -->` stands before commands, `<!-- test: answer -->` before what they print (a part).
 */
import { execFile, execFileSync } from 'node:child_process'
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { mkdir, mkdtemp, mkdtempDisposable, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join, relative } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { startTrunkline, TRUNKLINE } from '../../examples/run.ts'
import type { Trunkline } from '../../examples/run.ts'
import { anchorNamer } from '../../scripts/site.ts'
import { loadConfiguration } from '../../src/config/load.ts'
import { describeWith } from '../support/programs.ts'

const ROOT = fileURLToPath(new URL('../..', import.meta.url))
/** Where the pages say the demo is. */
const ORIGIN = 'http://127.0.0.1:7420'

interface Block {
  /** Page and line, which name the test. */
  readonly at: string
  readonly language: string
  readonly mark: string | undefined
  readonly text: string
}

const pages = [
  'README.md',
  'SECURITY.md',
  'CONTRIBUTING.md',
  'CHANGELOG.md',
  ...['docs', 'examples'].flatMap((folder) =>
    readdirSync(join(ROOT, folder), { recursive: true, encoding: 'utf8' })
      .filter((file) => file.endsWith('.md') && !file.startsWith('files'))
      .map((file) => `${folder}/${file}`),
  ),
]

const textOfPage = (page: string): string => readFileSync(join(ROOT, page), 'utf8')

const blocks = pages.flatMap((page): Block[] => {
  const text = textOfPage(page)
  return [...text.matchAll(/(?:^<!-- test: (\w+) -->\n)?^```(\w+)\n([^]*?)^```$/gm)].map((found) => ({
    at: `${page}:${text.slice(0, found.index).split('\n').length}`,
    mark: found[1],
    language: found[2]!,
    text: found[3]!,
  }))
})

/** The headings of a page as links name them; a comment in a script (`# …`) is none. */
const anchorsOf = (page: string): readonly string[] => {
  const anchorOf = anchorNamer()
  const text = textOfPage(page).replaceAll(/^ *```[^]*?^ *```/gm, '')
  return [...text.matchAll(/^#{1,6} +(.+)$/gm)].map(([, heading]) => anchorOf(heading!))
}

/** Each marked command with the answer that stands below it. */
const commands = blocks.flatMap((block, at) => {
  const next = blocks[at + 1]
  return block.mark === 'run' ? [{ ...block, answer: next?.mark === 'answer' ? next.text : undefined }] : []
})

/** 32 bytes for `state.key`. */
const KEY = Buffer.from(Array.from({ length: 32 }, (_, at) => at)).toString('base64')

test.each(['README.md', 'docs/start/personal.md'])('the alias of %s works in a clone whose path has a space', async (page) => {
  const [alias] = /^alias trunkline=.*$/m.exec(textOfPage(page)) ?? ['']
  await using folder = await mkdtempDisposable(join(tmpdir(), 'a clone-'))
  await symlink(ROOT, join(folder.path, 'clone'))
  const script = `cd clone\n${alias}\ntrunkline --version\n`
  const { version } = JSON.parse(textOfPage('package.json')) as { version: string }
  expect(execFileSync('sh', { cwd: folder.path, input: script, encoding: 'utf8' }).trim()).toBe(version)
})

describeWith(['curl'], 'commands against the demo, started as `npm start` does', () => {
  let demo: Trunkline
  beforeAll(async () => {
    const { scripts } = JSON.parse(textOfPage('package.json')) as { scripts: { start: string } }
    const config = /^exec node \S+\.ts up -c (\S+)$/.exec(scripts.start)?.[1] ?? scripts.start
    demo = await startTrunkline(config, { cwd: ROOT })
  })
  afterAll(() => demo[Symbol.asyncDispose]())

  test('README and the page behind it show both eras', () => {
    const shown = commands.map(({ at }) => at.split(':', 1)[0])
    expect(shown).toEqual(expect.arrayContaining(['README.md', 'docs/start/personal.md']))
  })

  test.each(commands)('$at answers as shown', async ({ text, answer }) => {
    const shown = text.replaceAll(ORIGIN, demo.url.origin)
    const { stdout } = await promisify(execFile)('sh', ['-eu', '-c', shown], { cwd: ROOT })
    if (answer === undefined) return expect(stdout).not.toBe('')
    // One JSON body, or the last event of a stream.
    const body = [...stdout.matchAll(/^data: (.+)$/gm)].at(-1)?.[1] ?? stdout
    expect(JSON.parse(body)).toMatchObject(JSON.parse(answer) as object)
  })
})

describe('commands', () => {
  test('README names no command that is not there, and the page of commands all of them', async () => {
    const [program, ...words] = TRUNKLINE
    const { stdout } = await promisify(execFile)(program, [...words, '--help'])
    const known = [...(stdout.split(/^Commands:$/m)[1] ?? '').matchAll(/^ {2}(\w+)/gm)].map(([, name]) => name)
    const rows = textOfPage('README.md').match(/^\| `trunkline .*$/gm) ?? []
    const named = rows.flatMap((row) => [...row.split('|')[1]!.matchAll(/`trunkline (\w+)/g)].map(([, name]) => name))
    expect(named.length).toBeGreaterThan(5)
    expect(known).toEqual(expect.arrayContaining(named))
    const page = textOfPage('docs/commands.md')
    expect(known.filter((name) => name !== 'help' && !page.includes(`trunkline ${name}`))).toEqual([])
  })
})

describe('configurations', () => {
  let folder: string
  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'trunkline-docs-'))
    // What the pages include and name.
    await mkdir(join(folder, 'servers'))
    await writeFile(join(folder, '.mcp.json'), '{ "mcpServers": {} }')
    await writeFile(join(folder, '.env'), 'TRACKER_TOKEN=t\n', { mode: 0o600 })
    await mkdir(join(folder, 'secrets'))
    await writeFile(join(folder, 'secrets', 'database.key'), 'd\n', { mode: 0o600 })
    await writeFile(join(folder, 'read-secret'), '#!/bin/sh\necho "$@"\n', { mode: 0o700 })
  })
  afterAll(() => rm(folder, { recursive: true, force: true }))

  // What names certificates is loaded by test/integration/proxies.test.ts, which makes some.
  const shown = blocks.filter(({ language, mark }) => language === 'yaml' && mark !== 'certificates')
  test.each(shown)('$at loads', async ({ text }) => {
    const file = join(folder, 'trunkline.yaml')
    await writeFile(file, text)
    const variables = {
      TRACKER_TOKEN: 't',
      CI_TOKEN: 't',
      PROXY_USER: 'u',
      PROXY_PASSWORD: 'p',
      TRUNKLINE_KEY: KEY,
      POD_IP: '10.0.0.3',
      STORE_PASSWORD: 'p',
    }
    const context = { env: { HOME: folder, ...variables }, cwd: folder, home: folder, overrides: { allowFaults: true } }
    await expect(loadConfiguration({ files: [file] }, context)).resolves.toMatchObject({ files: expect.arrayContaining([file]) })
  })
})

describe('pages', () => {
  test.each(blocks.filter(({ language }) => language === 'json'))('$at is JSON', ({ text }) => {
    expect(JSON.parse(text)).toBeTypeOf('object')
  })

  test('JSON inside the tables of the first page is JSON', () => {
    const inline = [...textOfPage('docs/start/personal.md').matchAll(/^\|.*`(\{[^`]+\})` \|$/gm)].map(([, json]) => json)
    expect(inline.length).toBeGreaterThan(0)
    for (const json of inline) expect(JSON.parse(json!)).toBeTypeOf('object')
  })

  test.each(pages)('the links of %s lead somewhere', (page) => {
    const targets = [...textOfPage(page).matchAll(/\]\((?!https?:)([^)#\s]+)(?:#[^)]*)?\)/g)].map(([, target]) => target)
    const broken = targets.filter((target) => !existsSync(join(ROOT, dirname(page), target!)))
    expect(broken.map((target) => `${page} → ${relative(ROOT, join(ROOT, dirname(page), target!))}`)).toEqual([])
  })

  test.each(pages)('the links of %s to headings lead to some', (page) => {
    const links = [...textOfPage(page).matchAll(/\]\((?!https?:)([^)#\s]*)#([^)\s]+)\)/g)]
    const broken = links.filter(([, target, anchor]) => {
      const file = target === '' ? page : join(dirname(page), target!)
      return file.endsWith('.md') && !anchorsOf(file).includes(decodeURI(anchor!))
    })
    expect(broken.map(([link]) => link)).toEqual([])
  })
})
