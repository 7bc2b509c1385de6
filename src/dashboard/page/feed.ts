/** The live feed: one event stream into the list of calls. After a break it is reopened at the call after the last known one. */
import { signal } from '@preact/signals'
import type { FeedMessage } from '../../admin/calls/calls.ts'
import type { CallPage } from '../../observe/observer.ts'
import { CallList, MAX_CALLS } from '../model/call-list.ts'
import { readEvents } from '../model/event-lines.ts'
import { ApiError, ask, send } from './api.ts'

export const calls = new CallList()
/** Incremented with each change of `calls`. */
export const callsVersion = signal(0)
export const feedState = signal<'connecting' | 'live' | 'lost'>('connecting')

const PAGE = 1_000
const FIRST_WAIT_MS = 500
const LAST_WAIT_MS = 10_000

let changing: number | undefined
/** At most once for each frame. */
const changed = (): void => {
  // Cast: the Node types declare another result of `setTimeout` than browsers have.
  changing ??= setTimeout(() => {
    changing = undefined
    callsVersion.value++
  }, 16) as unknown as number
}

/** The reason why there is no feed; empty while it is open or connecting. */
export const feedProblem = signal('')
/** A hidden tab closes its stream after this time: a browser has six connections per origin, for all tabs. */
const HIDDEN_MS = 30_000

/** The process whose calls are in the list; empty: none yet. */
let run = ''

/** The older calls of the list of all begin before this id; 0: there are none. */
let olderBefore = Infinity
/** The latest search, and the id before which it goes on; 0: it is complete. */
let search = { filter: '', before: 0 }
let isLoadingOlder = false

const clear = (): void => {
  calls.clear()
  olderBefore = Infinity
  search = { filter: '', before: 0 }
  changed()
}

/** Reads until the signal fires. The list begins empty: the viewer before may have seen calls of others. */
export const followCalls = async (until: AbortSignal): Promise<void> => {
  clear()
  let waitMs = FIRST_WAIT_MS
  while (!until.aborted) {
    const stream = new AbortController()
    const stop = (): void => stream.abort()
    let hiding: ReturnType<typeof setTimeout> | undefined
    const handleVisibility = (): void => {
      clearTimeout(hiding)
      if (document.hidden) hiding = setTimeout(stop, HIDDEN_MS)
    }
    until.addEventListener('abort', stop)
    document.addEventListener('visibilitychange', handleVisibility)
    try {
      feedState.value = 'connecting'
      await readFeed(stream.signal, () => (waitMs = FIRST_WAIT_MS))
    } catch (error) {
      feedProblem.value = error instanceof ApiError ? error.message : ''
    }
    clearTimeout(hiding)
    document.removeEventListener('visibilitychange', handleVisibility)
    until.removeEventListener('abort', stop)
    if (until.aborted) return
    feedState.value = 'lost'
    // Kept calls are shown even without a live feed.
    await loadPage('').catch(() => undefined)
    await new Promise((resolve) => setTimeout(resolve, waitMs))
    if (document.hidden) await new Promise((resolve) => document.addEventListener('visibilitychange', resolve, { once: true }))
    waitMs = Math.min(waitMs * 2, LAST_WAIT_MS)
  }
}

const readFeed = async (until: AbortSignal, isOpen: () => void): Promise<void> => {
  const after = calls.latest === 0 ? '' : `?after=${calls.latest}`
  const response = await send('GET', `/feed${after}`, undefined, until)
  isOpen()
  feedProblem.value = ''
  feedState.value = 'live'
  if (after === '') await loadPage('').catch(() => undefined)
  // Cast: the response of the gateway has a body.
  for await (const data of readEvents(response.body as ReadableStream<Uint8Array>)) take(JSON.parse(data) as FeedMessage)
}

const take = (message: FeedMessage): void => {
  if (message.type === 'hello') {
    if (run !== '' && message.run !== run) {
      // Its calls have the numbers of others.
      clear()
      void loadPage('').catch(() => undefined)
    } else void loadOpen()
    run = message.run
  } else if (message.type === 'gap') {
    calls.gap(message.missed)
    void loadOpen()
  } else calls.add(message.calls)
  changed()
}

/** As many as fit into a filter. */
const MOST_OPEN = 60

/** Requests calls that are open in the list: their ends are not sent again after a break or a gap. */
const loadOpen = async (): Promise<void> => {
  const ids = calls.openIds.slice(0, MOST_OPEN)
  if (ids.length === 0) return
  const page = await requestPage(`id:${ids.join(',')}`).catch(() => undefined)
  calls.addFound(page?.calls ?? [])
  changed()
}

const requestPage = (filter: string, before = Infinity): Promise<CallPage> => {
  const query = new URLSearchParams({ filter, limit: String(PAGE), ...(before !== Infinity && { before: String(before) }) })
  return ask<CallPage>('GET', `/calls?${query.toString()}`)
}

/** Adds the newest kept calls that match to the list, or those before an id. */
export const loadPage = async (filter: string, before = Infinity): Promise<void> => {
  const page = await requestPage(filter, before)
  if (filter === '') {
    calls.addPage(page.calls)
    olderBefore = Math.min(olderBefore, page.next ?? 0)
  } else {
    calls.addFound(page.calls)
    search = { filter, before: page.next ?? 0 }
  }
  changed()
}

/** Adds the next older page to the list, if there is one and the list has room. */
export const loadOlder = async (filter: string): Promise<void> => {
  const before = filter === '' ? olderBefore : search.filter === filter ? search.before : 0
  const isFull = filter === '' && calls.size >= MAX_CALLS
  if (isLoadingOlder || isFull || before === 0 || before === Infinity) return
  isLoadingOlder = true
  await loadPage(filter, before).catch(() => undefined)
  isLoadingOlder = false
}
