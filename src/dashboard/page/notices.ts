/** One short sentence at the edge of the page, also for screen readers: copied, restarted, refused. */
import { signal } from '@preact/signals'
import { asError } from '../../values/as-error.ts'

export interface Notice {
  readonly text: string
  readonly isTrouble: boolean
}

export const notice = signal<Notice | undefined>(undefined)
const SHOWN_MS = 5_000
let timer: ReturnType<typeof setTimeout> | undefined

export const notify = (text: string, isTrouble = false): void => {
  clearTimeout(timer)
  notice.value = { text, isTrouble }
  timer = setTimeout(() => (notice.value = undefined), SHOWN_MS)
}

/** Makes a request of the user; shows the reason if it fails. */
export const attempting = async (request: () => Promise<void>): Promise<void> => {
  try {
    await request()
  } catch (error) {
    notify(asError(error).message, true)
  }
}

export const copy = async (text: string, what: string): Promise<void> => {
  try {
    await navigator.clipboard.writeText(text)
    notify(`Copied ${what}`)
  } catch {
    notify('The browser does not allow this page to copy. Select the text.', true)
  }
}
