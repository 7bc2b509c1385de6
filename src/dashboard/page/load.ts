/** Data of a screen: asked for when it is shown, and again while it is, so that what is seen is what is. */
import { useCallback, useEffect, useRef, useState } from 'preact/hooks'
import { ApiError, askText } from './api.ts'

export interface Loaded<T> {
  /** The last good answer. */
  readonly data: T | undefined
  readonly error: ApiError | undefined
  readonly isLoading: boolean
  readonly reload: () => void
}

/** `everyMs`: 0: once. An empty path asks for nothing. */
export const useLoad = <T>(path: string, everyMs = 0): Loaded<T> => {
  const [state, setState] = useState<{ path: string; data: T | undefined; error: ApiError | undefined }>({
    path,
    data: undefined,
    error: undefined,
  })
  const [turn, setTurn] = useState(0)
  /** The last answer: the same text is the same data, so that nothing that is made of it is made again. */
  const last = useRef<{ readonly path: string; readonly text: string; readonly data: T } | undefined>(undefined)
  useEffect(() => {
    if (path === '') return undefined
    const over = new AbortController()
    let timer: ReturnType<typeof setTimeout> | undefined
    const load = async (): Promise<void> => {
      try {
        const text = await askText('GET', path, undefined, over.signal)
        // Cast: the gateway of this page wrote it.
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
  }, [path, everyMs, turn])
  const reload = useCallback(() => setTurn((before) => before + 1), [])
  const isCurrent = state.path === path
  return {
    data: isCurrent ? state.data : undefined,
    error: isCurrent ? state.error : undefined,
    isLoading: !isCurrent || (state.data === undefined && state.error === undefined),
    reload,
  }
}
