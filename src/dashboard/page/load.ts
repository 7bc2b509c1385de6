/** Data of a screen: requested when it is shown and at an interval, so that it stays current. */
import { useCallback, useEffect, useRef, useState } from 'preact/hooks'
import type { ToolRow } from '../../admin/catalog/tools.ts'
import type { Status } from '../../admin/state/status.ts'
import { ApiError, askText } from './api.ts'
import { encoded } from './route.ts'

export interface Loaded<T> {
  /** The last successful answer. */
  readonly data: T | undefined
  readonly error: ApiError | undefined
  readonly isLoading: boolean
  readonly reload: () => void
}

/** Statistics of all stored calls: no call is stored longer (`ui.capture.ttl`). */
export const STORED_STATS = '/stats?window=576h'

/** `everyMs`: 0: once. An empty path requests nothing. Another `version` requests it again. */
export const useLoad = <T>(path: string, everyMs = 0, version = ''): Loaded<T> => {
  const [state, setState] = useState<{ path: string; data: T | undefined; error: ApiError | undefined }>({
    path,
    data: undefined,
    error: undefined,
  })
  const [turn, setTurn] = useState(0)
  /** The last answer: an unchanged text keeps the data object, so that derived values are not computed again. */
  const last = useRef<{ readonly path: string; readonly text: string; readonly data: T } | undefined>(undefined)
  useEffect(() => {
    if (path === '') return undefined
    const over = new AbortController()
    let timer: ReturnType<typeof setTimeout> | undefined
    const load = async (): Promise<void> => {
      try {
        const text = await askText('GET', path, undefined, over.signal)
        // Cast: the answer of the gateway.
        if (last.current?.path !== path || last.current.text !== text) last.current = { path, text, data: JSON.parse(text) as T }
        setState({ path, data: last.current.data, error: undefined })
      } catch (error) {
        if (over.signal.aborted) return
        if (!(error instanceof ApiError)) throw error
        setState((before) => ({ path, data: before.path === path ? before.data : undefined, error }))
      }
      if (everyMs > 0 && !over.signal.aborted) timer = setTimeout(() => void load(), document.hidden ? everyMs * 5 : everyMs)
    }
    void load()
    return () => {
      over.abort()
      clearTimeout(timer)
    }
  }, [path, everyMs, turn, version])
  const reload = useCallback(() => setTurn((before) => before + 1), [])
  const isCurrent = state.path === path
  return {
    data: isCurrent ? state.data : undefined,
    error: isCurrent ? state.error : undefined,
    isLoading: !isCurrent || (state.data === undefined && state.error === undefined),
    reload,
  }
}

/** Tools with these words in their names, requested again when the list of tools has changed: it may have many megabytes. */
export const useTools = (query = ''): Loaded<{ readonly tools: readonly ToolRow[] }> => {
  const status = useLoad<Status>('/status', 10_000)
  const version = status.data?.toolsDigest ?? ''
  const tools = useLoad<{ readonly tools: readonly ToolRow[] }>(
    version === '' ? '' : `/tools${query === '' ? '' : `?query=${encoded(query)}`}`,
    0,
    version,
  )
  return { ...tools, error: tools.error ?? status.error }
}
