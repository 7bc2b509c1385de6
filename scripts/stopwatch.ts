/**
 * `npm run stopwatch [-- --from REPOSITORY]`: the time from a clean clone to the first call of a tool of
 * one's own server in one's own host, step by step, with the commands that README gives under "In five minutes".
 *
 * The person has a host with one server in its file (`.mcp.json` of a project). The host is the command line of the MCP
 * Inspector, which reads that file and needs no model.
 */
import { spawnSync } from 'node:child_process'
import { existsSync } from 'node:fs'
import { mkdir, mkdtemp, realpath, rm, writeFile } from 'node:fs/promises'
import { homedir, tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { parseArgs, stripVTControlCharacters } from 'node:util'

const HERE = fileURLToPath(new URL('..', import.meta.url))
const { values } = parseArgs({ options: { from: { type: 'string', default: HERE } } })

const CONNECT = 'claude-code --scope project --move --yes'

/** One thing that the person does. */
interface Step {
  readonly what: string
  /** As it is typed or pasted; empty: nothing is typed. */
  readonly typed: string
  readonly seconds: number
}

/** Characters per second of a person who types without haste. */
const TYPING = 5
/** To read what a command says before the next one is typed. */
const READING_SECONDS = 2

const root = await realpath(await mkdtemp(join(tmpdir(), 'trunkline-stopwatch-')))
const [home, project, clone] = ['home', 'project', 'trunkline'].map((name) => join(root, name))
await Promise.all([home, project].map((folder) => mkdir(folder)))
const env = {
  PATH: process.env['PATH'],
  HOME: home,
  npm_config_cache: process.env['npm_config_cache'] ?? join(homedir(), '.npm'),
  NO_COLOR: '1',
}

const steps: Step[] = []
/** What it printed. Throws where it fails. `typed`: with the alias that README gives, or what is asked in the host. */
const step = (what: string, cwd: string, command: string, typed = command): string => {
  const started = performance.now()
  const { status, stdout, stderr } = spawnSync('sh', ['-c', command], { cwd, env, encoding: 'utf8', maxBuffer: 64 * 1024 ** 2 })
  const seconds = (performance.now() - started) / 1_000
  if (status !== 0) throw new Error(`${command}: exit ${status}\n${stdout.slice(-2_000)}\n${stderr.slice(-2_000)}`)
  steps.push({ what, typed, seconds })
  return stripVTControlCharacters(stdout + stderr)
}

try {
  const own = join(clone, 'node_modules/@modelcontextprotocol/server-filesystem/dist/index.js')
  await writeFile(
    join(project, '.mcp.json'),
    `${JSON.stringify({ mcpServers: { files: { type: 'stdio', command: 'node', args: [own, project] } } }, null, 2)}\n`,
  )
  step('clone', root, `git clone -q ${values.from === HERE ? resolve(HERE) : values.from} trunkline`)
  step('install', clone, 'npm ci --silent')
  const trunkline = `${clone}/node_modules/.bin/node ${clone}/scripts/start.ts`
  step('connect', project, `${trunkline} connect ${CONNECT}`, `trunkline connect ${CONNECT}`)
  const inspector = join(clone, 'node_modules/.bin/mcp-inspector')
  if (!existsSync(inspector)) throw new Error(`${inspector} is not there`)
  const answer = step(
    'first call, in the host',
    project,
    `${inspector} --cli --config .mcp.json --server trunkline --method tools/call --tool-name files__list_directory --tool-arg path=${project}`,
    'list the files here',
  )
  if (!answer.includes('.mcp.json')) throw new Error(`no answer of the server: ${answer}`)
  const typed = steps.reduce((sum, one) => sum + one.typed.length, 0)
  const reading = steps.length * READING_SECONDS
  const working = steps.reduce((sum, { seconds }) => sum + seconds, 0)
  for (const { what, seconds } of steps) process.stdout.write(`${what.padEnd(24)} ${seconds.toFixed(1).padStart(6)} s\n`)
  process.stdout.write(
    `${'the machine works'.padEnd(24)} ${working.toFixed(1).padStart(6)} s\n` +
      `typing (${typed} characters, ${TYPING}/s), reading (${READING_SECONDS} s a step): ${(typed / TYPING + reading).toFixed(0)} s; pasted from README: ${reading} s\n`,
  )
} finally {
  await rm(root, { recursive: true, force: true, maxRetries: 5 })
}
