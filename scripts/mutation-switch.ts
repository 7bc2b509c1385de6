/**
 * Tells the processes of a copy of the program that `npm run mutate` made which mutation is on: each test file has one of its own, so that
 * one run tries many. While `on` is empty, writes down which tests come to which mutation. A process that a test started, or that such a
 * process started, finds its test by the worker that it descends from.
 */
import { appendFileSync, existsSync, readFileSync } from 'node:fs'

/** `npm run mutate` writes its folder here. In it: `on` (key by test file, or by `*` for all), `running` (test file by process), `reached`. */
const FOLDER = '/FOLDER/'

declare global {
  /** Is set in the workers, by `mutation-setup.ts`. */
  var runningTest: string | undefined
}

/** One turn of the event loop takes so long only in a loop that the mutation made endless. */
const ENDLESS_NS = 60_000_000_000n
// Tests replace these later.
const { setImmediate, process } = globalThis
const hrtime = process?.hrtime
/** No mutation is on. */
const PROBE = -2

let on: Readonly<Record<string, number>> | undefined
let ofParent: string | undefined
/** By key, the test that came there last. */
const reached: (string | undefined)[] = []
let [now, active] = ['', -1]
/** The begin of this turn of the event loop, as far as it is known. */
let turnNs: bigint | undefined

const testOfParent = (): string => {
  // First our own: a worker thread is in the process of its test.
  let pid = process.pid
  while (pid > 1) {
    if (existsSync(`${FOLDER}/running/${pid}`)) return readFileSync(`${FOLDER}/running/${pid}`, 'utf8')
    const [, parent] = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ').at(-1)?.split(' ') ?? []
    pid = Number(parent)
  }
  return ''
}

const begin = (test: string): void => {
  on ??= JSON.parse(readFileSync(`${FOLDER}/on`, 'utf8')) as Readonly<Record<string, number>>
  now = test
  active = on['none'] === 1 ? PROBE : (on[test] ?? on['*'] ?? -1)
}

/** Whether the mutation of this key is on. In a browser none is. */
export const isMutant = (key: number): boolean => {
  if (process === undefined) return false
  const test = globalThis.runningTest ?? (ofParent ??= testOfParent())
  if (on === undefined || test !== now) begin(test)
  if (active === PROBE && reached[key] !== test) {
    reached[key] = test
    appendFileSync(`${FOLDER}/reached/${process.pid}`, `${key} ${test}\n`)
  }
  if (active !== key) return false
  if (turnNs === undefined) {
    turnNs = hrtime.bigint()
    setImmediate(() => (turnNs = undefined)).unref()
  } else if (hrtime.bigint() - turnNs > ENDLESS_NS) throw new Error('a mutation made a loop endless')
  return true
}
