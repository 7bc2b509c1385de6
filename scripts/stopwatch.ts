/**
 * `npm run stopwatch [-- --from REPOSITORY] [--runs N] [--record]`: the time from a clean clone to the first call of a tool of
 * the user's own server in the user's own host, step by step, with the commands of README under "In five minutes".
 *
 * The user has a host with one server in its file (`.mcp.json` of a project). The host is the command line of the MCP
 * Inspector, which reads that file and needs no model. `--record` writes the figures of all runs into docs/stopwatch.md.
 *
 * Not obvious: the home folder of the user is empty, so npm would lose the settings of this machine; they are passed on in the
 * variables that npm reads.
 */
import { spawnSync } from 'node:child_process'
import { existsSync } from 'node:fs'
import { mkdir, mkdtemp, realpath, rm, writeFile } from 'node:fs/promises'
import { availableParallelism, homedir, loadavg, tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { parseArgs, stripVTControlCharacters } from 'node:util'

const HERE = fileURLToPath(new URL('..', import.meta.url))
const { values } = parseArgs({
  options: { from: { type: 'string', default: HERE }, runs: { type: 'string', default: '1' }, record: { type: 'boolean' } },
})

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

/** What a person does in one run, in order. */
interface Run {
  readonly steps: readonly Step[]
  /** Of one minute, when the run began. */
  readonly load: number
}

/** Settings of npm and of the network that the machine has, by the variables that npm and Node read. */
const machineSettings = (): Record<string, string> => {
  const from = process.env
  const passed = ['npm_config_registry', 'npm_config_globalconfig', 'NODE_EXTRA_CA_CERTS', 'SSL_CERT_FILE', 'SSL_CERT_DIR']
  const proxies = ['HTTP_PROXY', 'HTTPS_PROXY', 'NO_PROXY'].flatMap((name) => [name, name.toLowerCase()])
  return {
    npm_config_userconfig: from['npm_config_userconfig'] ?? from['NPM_CONFIG_USERCONFIG'] ?? join(homedir(), '.npmrc'),
    npm_config_cache: from['npm_config_cache'] ?? from['NPM_CONFIG_CACHE'] ?? join(homedir(), '.npm'),
    ...Object.fromEntries([...passed, ...proxies].flatMap((name) => (from[name] === undefined ? [] : [[name, from[name]]]))),
  }
}

const oneRun = async (): Promise<Run> => {
  const root = await realpath(await mkdtemp(join(tmpdir(), 'trunkline-stopwatch-')))
  const [home, project, clone] = [join(root, 'home'), join(root, 'project'), join(root, 'trunkline')]
  await Promise.all([home, project].map((folder) => mkdir(folder)))
  const env = { PATH: process.env['PATH'], HOME: home, NO_COLOR: '1', ...machineSettings() }
  const load = loadavg()[0]
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
    step('`npm ci`', clone, 'npm ci --silent', 'npm ci')
    const trunkline = `${clone}/node_modules/.bin/node ${clone}/scripts/start.ts`
    step('`trunkline connect`', project, `${trunkline} connect ${CONNECT}`, `trunkline connect ${CONNECT}`)
    const inspector = join(clone, 'node_modules/.bin/mcp-inspector')
    if (!existsSync(inspector)) throw new Error(`${inspector} is not there`)
    const answer = step(
      'first call, in the host',
      project,
      `${inspector} --cli --config .mcp.json --server trunkline --method tools/call --tool-name files__list_directory --tool-arg path=${project}`,
      'list the files here',
    )
    if (!answer.includes('.mcp.json')) throw new Error(`no answer of the server: ${answer}`)
    return { steps, load: load! }
  } finally {
    await rm(root, { recursive: true, force: true, maxRetries: 5 })
  }
}

const working = ({ steps }: Run): number => steps.reduce((sum, { seconds }) => sum + seconds, 0)
const person = ({ steps }: Run): { readonly characters: number; readonly typing: number; readonly reading: number } => {
  const characters = steps.reduce((sum, { typed }) => sum + typed.length, 0)
  return { characters, typing: characters / TYPING, reading: steps.length * READING_SECONDS }
}

const page = (runs: readonly Run[]): string => {
  const [first] = runs
  const { characters, typing, reading } = person(first!)
  const cells = (texts: readonly string[]): string => `| ${texts.join(' | ')} |`
  const seconds = (value: number): string => `${value.toFixed(1)} s`
  return `# Stopwatch

<!-- Written by \`npm run stopwatch -- --record\`. -->

From a clean clone to the first call of a tool of your own server in your own host. The host has one server in its file (\`.mcp.json\` of a
project), and is the command line of the MCP Inspector. Each run has an empty home folder and a clone of its own; npm's cache is warm. Node
${process.versions.node}, ${availableParallelism()} cores.

${cells(['', ...runs.map((_, at) => `run ${at + 1}`)])}
${cells(['---', ...runs.map(() => '---:')])}
${cells(['load of the machine before it', ...runs.map(({ load }) => load.toFixed(1))])}
${first!.steps.map(({ what }, at) => cells([what, ...runs.map(({ steps }) => seconds(steps[at]!.seconds))])).join('\n')}
${cells(['the machine works', ...runs.map((run) => seconds(working(run)))])}
${cells(['reading (2 s a step)', ...runs.map(() => seconds(reading))])}
${cells(['pasted from README: all', ...runs.map((run) => seconds(working(run) + reading))])}
${cells([`typing (${characters} characters, ${TYPING} a second), if nothing is pasted`, ...runs.map(() => seconds(typing))])}

What a person does is read and paste four times: ${seconds(reading)}; typed in full it is ${seconds(typing + reading)}. Time that the machine works depends on the
installation: it installs what the tests and the dashboard need, too. \`npx trunkline\` installs the program alone ([packaging](packaging.md)).
`
}

const runs: Run[] = []
for (let number = 0; number < Number(values.runs); number++) {
  const run = await oneRun()
  runs.push(run)
  for (const { what, seconds } of run.steps) process.stdout.write(`${what.padEnd(24)} ${seconds.toFixed(1).padStart(6)} s\n`)
  const { characters, typing, reading } = person(run)
  process.stdout.write(
    `${'the machine works'.padEnd(24)} ${working(run).toFixed(1).padStart(6)} s (load ${run.load.toFixed(1)})\n` +
      `typing (${characters} characters, ${TYPING}/s), reading (${READING_SECONDS} s a step): ${(typing + reading).toFixed(0)} s; pasted from README: ${reading} s\n`,
  )
}
if (values.record === true) await writeFile(join(HERE, 'docs/stopwatch.md'), page(runs))
