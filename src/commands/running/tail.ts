/** `trunkline tail`: calls of the running process as they end, in columns, as JSON, or into a recording for `mock`. */
import { open, rm } from 'node:fs/promises'
import type { FileHandle } from 'node:fs/promises'
import type { Control } from '../../admin/control.ts'
import type { CallRow } from '../../observe/capture/captured.ts'
import { asError } from '../../values/as-error.ts'
import { OPERATOR } from '../../observe/viewer.ts'
import { formatHeader, formatRecorded } from '../../observe/recorded/recorded-file.ts'
import { running } from '../serve/inline.ts'
import { explainRefusal } from './captured-calls.ts'
import { CommandError, EXIT } from '../terminal/io.ts'
import type { Invocation } from '../terminal/io.ts'
import { closedOutput, painter, printJson, printLines, remark } from '../terminal/print.ts'
import type { Line, Paint } from '../terminal/print.ts'
import { counted } from '../../values/counted.ts'

export interface TailOptions {
  /** File to which the calls are written, with both sides of each. */
  readonly record?: string
  /** Begins with the captured calls. */
  readonly since?: boolean
  /** Key of a server. */
  readonly server?: string
  /** Only calls that ended with an error. */
  readonly errors?: boolean
}

export const tail = async (invocation: Invocation, terms: readonly string[], options: TailOptions): Promise<number> => {
  const { record, since, server, errors } = options
  const filter = [...terms, ...(server === undefined ? [] : [`server:${server}`]), ...(errors === true ? ['err'] : [])].join(' ')
  const { io, json, context } = invocation
  const control = await running(invocation)
  const paint = painter(io.stdout, context.env)
  const patience = untilAfter(io.interrupted, LAST_ROWS_MS)
  await using file = record === undefined ? undefined : await openRecording(record, control, patience)
  const failed = new AbortController()
  const isOver = AbortSignal.any([io.interrupted, closedOutput(io), failed.signal])
  // Rows are written in order.
  let last: Promise<void> = Promise.resolve()
  let waiting = 0
  const enqueue = (write: () => Promise<void> | void): void => {
    waiting++
    last = last.then(() => write())
    last.then(
      () => waiting--,
      () => failed.abort(),
    )
  }
  const show = async (row: CallRow): Promise<void> => {
    if (json) await printJson(io, row)
    else await printLines(io, [lineOf(row, paint)])
    if (file !== undefined) await file.add(row)
  }
  if (!json) await printLines(io, [HEAD])
  const sink = {
    get isStalled() {
      return waiting > MAX_WAITING
    },
    drained: () => last.catch(() => undefined),
    send: (message: Parameters<Parameters<Control['follow']>[1]['send']>[0]): void => {
      if (message.type === 'gap') enqueue(() => remark(io, `${counted(message.missed, 'call')} not shown: too many at once`))
      if (message.type !== 'calls') return
      for (const row of message.calls) if (row.state === 'done') enqueue(() => show(row))
    },
  }
  const feed = { viewer: OPERATOR, filter, after: since === true ? 0 : undefined, isWhole: record !== undefined }
  await control.follow(feed, sink, isOver).catch(async (error: unknown) => {
    if (file?.count === 0) await file.remove()
    return explainRefusal(error)
  })
  await last
  if (file !== undefined) remark(io, `${record} has ${counted(file.count, 'call')}${whatIsMissing(file)}`)
  if (isOver.aborted) return EXIT.ok
  throw new CommandError(EXIT.unreachable, 'the process has ended')
}

const HEAD = 'TIME          ID      STATUS      TIME MS  HOST/GATEWAY/SERVER  TOKENS  CALL'
const BAR = 12
/** Rows that wait for the output before the feed is read no further; the process then counts the rows that it leaves out. */
const MAX_WAITING = 1_000
/** After an interruption, what was shown is still written, unless the process does not answer. */
const LAST_ROWS_MS = 5_000

/** `20:15:03.123  4711    ok            312.4  ▏███████████  2030  gh__search_code → github  (claude-code, review)`. */
const lineOf = (row: CallRow, paint: Paint): Line => {
  const { at, id, outcome, ms, tokensOut, error } = row
  const status = (outcome ?? 'open').padEnd(10)
  const isGood = error === null
  return [
    `${at.slice(11, 23)}  ${String(id).padEnd(6)}  `,
    isGood ? status : paint(status, 'red'),
    `  ${ms.total.toFixed(1).padStart(7)}  `,
    paint(barOf(ms), 'dim'),
    `         ${String(tokensOut).padStart(6)}  `,
    whatOf(row),
    ...(isGood ? [] : [paint(`  ${error.message ?? error.kind ?? ''}`, 'red')]),
  ]
}

const whatOf = ({ method, name, server, host, toolset, endpoint, rules }: CallRow): string => {
  const called = method === 'tools/call' ? (name ?? '') : `${method}${name === null ? '' : ` ${name}`}`
  const by = [host?.split(' ', 1)[0], toolset ?? endpoint, ...rules].filter(Boolean).join(', ')
  return `${called}${server === null ? '' : ` → ${server}`}${by === '' ? '' : `  (${by})`}`
}

/** The three parts of the time: `░` host, `▒` gateway, `█` server. */
const barOf = ({ total, host, gateway }: CallRow['ms']): string => {
  if (total <= 0) return ' '.repeat(BAR)
  const [forHost, forGateway] = [host, gateway].map((part) => Math.round((part / total) * BAR))
  return `${'░'.repeat(forHost ?? 0)}${'▒'.repeat(forGateway ?? 0)}`.padEnd(BAR, '█').slice(0, BAR)
}

const whatIsMissing = ({ partial, lost }: RecordingFile): string =>
  [
    partial > 0 && `, of which mock cannot serve ${partial}: without an answer, or too large to keep`,
    lost > 0 && `; ${counted(lost, 'call')} shown could not be written: the running process did not return its messages`,
  ]
    .filter(Boolean)
    .join('')

/** Aborts so many milliseconds after `signal`. */
const untilAfter = (signal: AbortSignal, ms: number): AbortSignal => {
  const end = new AbortController()
  const stop = (): void => void setTimeout(() => end.abort(), ms).unref()
  if (signal.aborted) stop()
  else signal.addEventListener('abort', stop, { once: true })
  return end.signal
}

interface RecordingFile extends AsyncDisposable {
  readonly count: number
  /** The calls without both messages, out of `count`. */
  readonly partial: number
  /** The calls that were shown and are not in the file. */
  readonly lost: number
  add(row: CallRow): Promise<void>
  /** So that the command can be given again: an existing file is refused. */
  remove(): Promise<void>
}

/** Refuses an existing file, so that recordings are not mixed. `signal` ends the wait for the messages of a call. */
const openRecording = async (name: string, control: Control, signal: AbortSignal): Promise<RecordingFile> => {
  const notWritten = (why: string): CommandError => new CommandError(EXIT.usage, `${name} cannot be written: ${why}`)
  const tools = (await control.tools('', undefined)) ?? []
  let handle: FileHandle
  try {
    handle = await open(name, 'wx', 0o600)
  } catch (error) {
    const { code, message } = asError(error)
    throw notWritten(code === 'EEXIST' ? 'it already exists; name another file' : message)
  }
  const write = async (text: string): Promise<void> => {
    // Unlike `write`, it reports a text that is written in part.
    await handle.appendFile(text).catch((error: unknown) => {
      throw notWritten(asError(error).message)
    })
  }
  await write(formatHeader(tools.map(({ definition }) => definition)))
  let [count, partial, lost] = [0, 0, 0]
  return {
    get count() {
      return count
    },
    get partial() {
      return partial
    },
    get lost() {
      return lost
    },
    add: async ({ id }) => {
      const detail = await control.callDetail(OPERATOR, id, signal).catch(() => undefined)
      if (detail === undefined) return void lost++
      await write(formatRecorded(detail))
      count++
      if (detail.request?.text === undefined || detail.response?.text === undefined) partial++
    },
    remove: () => rm(name, { force: true }),
    [Symbol.asyncDispose]: () => handle.close(),
  }
}
