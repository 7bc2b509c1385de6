/**
 * A fake legacy server on pipes for tests of the command line, written by hand and sharing no code with `src/`:
 * `fake-server.ts MODE [LOG]`. It appends `start PID` and `end PID` to the file LOG, where one is named.
 *
 * - `good`: tools `echo` (answers its text), `fail` (answers `isError`), `refuse` (a JSON-RPC error), `wait` (answers when the
 *   file named by `until` exists), `env` (answers one of its variables), `add` (numbers a and b)
 * - `once`: good when it is the first that writes to LOG, else dying
 * - `fickle`: good, but `echo` is described otherwise by every process
 * - `hostile`: good, but descriptions, names, results and errors drive a terminal; `hostile-dying`: so does its stderr, and it exits with 3
 * - `long-names`: good, with one more tool, whose name is of 40 characters
 * - `stubborn`: good, but the end of stdin and SIGTERM do not end it
 * - `chatty`: good, but says on stderr that it starts and what it echoes, and logs a warning of `db` once it is initialized
 * - `deaf`: never answers; `dying`: says two lines on stderr and exits with 3; `noisy`: prints garbage, then is good
 */
import { appendFileSync, existsSync, watch } from 'node:fs'
import { dirname } from 'node:path'
import { createInterface } from 'node:readline'

interface Message {
  id?: number | string
  method?: string
  params?: { name?: string; protocolVersion?: string; arguments?: Record<string, unknown> }
}

const [mode = 'good', log] = process.argv.slice(2)
const note = (word: string): void => {
  if (log !== undefined) appendFileSync(log, `${word} ${process.pid}\n`)
}
const say = (message: object): void => void process.stdout.write(`${JSON.stringify({ jsonrpc: '2.0', ...message })}\n`)
let onPong: (() => void) | undefined
/** Resolves once all that was said has been read: what comes by stderr would overtake it else. */
const heard = (): Promise<void> =>
  new Promise((resolve) => {
    onPong = resolve
    say({ id: 'heard', method: 'ping' })
  })
const text = (words: string, isError = false): object => ({ content: [{ type: 'text', text: words }], isError })

const tool = (name: string, properties: Record<string, object>): object => ({
  name,
  description: `Does ${name}.`,
  inputSchema: { type: 'object', properties },
})
/** An escape sequence, its C1 form, a bell, line and paragraph separators, DEL, and characters that change the direction of text. */
const DRIVING = '\u001b[31mred\u001b]0;title\u0007 \u009b2J \u0085 \u2028\u2029 \u007f \u202e\u2066\rover'
const HOSTILE_TOOLS = [
  { ...tool('echo', {}), description: DRIVING, title: DRIVING },
  { ...tool('fail', {}), inputSchema: { type: 'object', description: DRIVING } },
  { ...tool('wait', {}), description: `pid ${process.pid} ${DRIVING}` },
  tool('refuse', {}),
  tool(`bad${DRIVING}`, {}),
]
const TOOLS = [
  tool('echo', { text: { type: 'string' } }),
  tool('fail', {}),
  tool('refuse', {}),
  tool('wait', { until: { type: 'string' } }),
  tool('env', { name: { type: 'string' } }),
  tool('add', { a: { type: 'number' }, b: { type: 'number' } }),
]

const renewed = (one: object): object =>
  'name' in one && one.name === 'echo' ? { ...one, description: `Does echo for ${process.pid}.` } : one

const exists = (file: string): Promise<void> =>
  new Promise((resolve) => {
    const watcher = watch(dirname(file), () => check())
    const check = (): void => {
      if (!existsSync(file)) return
      watcher.close()
      resolve()
    }
    check()
  })

const LONG_TOOLS = [tool('a'.repeat(40), {}), ...TOOLS]

const call = async (name: string | undefined, args: Record<string, unknown>): Promise<object> => {
  if (mode === 'hostile' && name === 'refuse') return { error: { code: -32050, message: DRIVING } }
  if (mode === 'hostile')
    return { result: { ...text(`${DRIVING}\n${DRIVING}`, name === 'fail'), structuredContent: { [DRIVING]: DRIVING } } }
  if (name === 'echo' && mode === 'chatty') {
    await heard()
    process.stderr.write(`echo ${String(args['text'])}\n`)
  }
  if (name === 'echo') return { result: text(String(args['text'])) }
  if (name === 'fail') return { result: text('it went wrong', true) }
  if (name === 'env') return { result: text(process.env[String(args['name'])] ?? 'unset') }
  if (name === 'add') return { result: text(JSON.stringify([args['a'], args['b']])) }
  if (name === 'wait') {
    note('called')
    await exists(String(args['until']))
    return { result: text('waited') }
  }
  return { error: { code: -32050, message: 'the tool refused' } }
}

const answer = async ({ method, params }: Message): Promise<object> => {
  if (method === 'initialize')
    return {
      result: {
        protocolVersion: params?.protocolVersion ?? '2025-11-25',
        capabilities: { tools: {}, ...(mode === 'chatty' && { logging: {} }) },
        serverInfo: { name: 'fake', version: '1' },
        ...(mode === 'hostile' && { instructions: DRIVING }),
      },
    }
  if (method === 'tools/list')
    return {
      result: {
        tools:
          mode === 'hostile'
            ? HOSTILE_TOOLS
            : mode === 'long-names'
              ? LONG_TOOLS
              : mode === 'fickle'
                ? TOOLS.map(renewed)
                : TOOLS,
      },
    }
  if (method === 'tools/call') return call(params?.name, params?.arguments ?? {})
  if (method === 'ping') return { result: {} }
  return { error: { code: -32601, message: 'Method not found' } }
}

const isDying = mode === 'dying' || mode === 'hostile-dying' || (mode === 'once' && log !== undefined && existsSync(log))
note('start')
process.on('exit', () => note('end'))
process.on('SIGTERM', () => (mode === 'stubborn' ? undefined : process.exit(0)))
if (mode === 'stubborn') setInterval(() => undefined, 1_000)
if (isDying) {
  process.stderr.write(
    mode === 'dying' || mode === 'once' ? 'reading the settings\nno settings found\n' : `Error: ${DRIVING}\n`,
    () => process.exit(3),
  )
} else {
  if (mode === 'chatty') process.stderr.write('\u001b[33mstarting\u001b[0m\n')
  if (mode === 'noisy') process.stdout.write('*** welcome ***\n{"not": "rpc"}\n')
  createInterface(process.stdin)
    .on('line', (line) => {
      const message = JSON.parse(line) as Message
      if (mode === 'chatty' && message.method === 'notifications/initialized')
        say({ method: 'notifications/message', params: { level: 'warning', logger: 'db', data: { slow: 1.0 } } })
      if (message.method === undefined) return onPong?.()
      if (mode === 'deaf' || message.id === undefined) return
      void answer(message).then((outcome) => say({ id: message.id, ...outcome }))
    })
    .on('close', () => (mode === 'stubborn' ? undefined : process.exit(0)))
}
