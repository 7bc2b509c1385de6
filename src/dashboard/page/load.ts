/** Data of a screen: asked for when it is shown, and again while it is, so that what is seen is what is. */
import { useCallback, useEffect, useRef, useState } from 'preact/hooks'
import { ApiError, ask } from './api.ts'

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
  const data = useRef<T | undefined>(undefined)
  useEffect(() => {
    if (path === '') return undefined
    const over = new AbortController()
    let timer: ReturnType<typeof setTimeout> | undefined
    const load = async (): Promise<void> => {
      try {
        data.current = await ask<T>('GET', path, undefined, over.signal)
        setState({ path, data: data.current, error: undefined })
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
