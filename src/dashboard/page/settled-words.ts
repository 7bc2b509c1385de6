/** The words of a search in the address (`q`), and the same as soon as no key has been pressed for a while. */
import { useEffect, useState } from 'preact/hooks'
import { route } from './route.ts'

/** How long after the last key is searched. */
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
