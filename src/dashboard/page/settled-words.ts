/** The search text in the address (`q`), and the same text debounced. */
import { useEffect, useState } from 'preact/hooks'
import { route } from './route.ts'

/** Delay of the search after the last key press. */
const SEARCH_MS = 250

export const useSettledWords = (): { readonly text: string; readonly settled: string } => {
  const text = route.value.query.get('q') ?? ''
  const [settled, setSettled] = useState(text)
  useEffect(() => {
    const timer = setTimeout(() => setSettled(text), SEARCH_MS)
    return () => clearTimeout(timer)
  }, [text])
  return { text, settled }
}
