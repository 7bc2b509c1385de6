/** Marked tools, by exposed name, for a change of all of them at once. Marks persist across screens, not across a reload of the page. */
import { signal } from '@preact/signals'

export const marks = signal<ReadonlySet<string>>(new Set())

export const setMarks = (names: readonly string[], isMarked: boolean): void => {
  const next = new Set(marks.peek())
  for (const name of names) {
    if (isMarked) next.add(name)
    else next.delete(name)
  }
  marks.value = next
}

export const clearMarks = (): void => {
  marks.value = new Set()
}
