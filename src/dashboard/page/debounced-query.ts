/** The search text in the address (`q`), and the same text debounced. */
import { useEffect, useState } from 'preact/hooks'
import { route } from './route.ts'

/** Delay of the search after the last key press. */
const SEARCH_MS = 250

export const useDebouncedQuery = (): { readonly text: string; readonly debounced: string } => {
  const text = route.value.query.get('q') ?? ''
  const [debounced, setDebounced] = useState(text)
  useEffect(() => {
    const timer = setTimeout(() => setDebounced(text), SEARCH_MS)
    return () => clearTimeout(timer)
  }, [text])
  return { text, debounced }
}
