/** Light or dark: the setting of the system, unless the user selected another. */
import { signal } from '@preact/signals'
import { attempt } from '../../values/attempt.ts'

export type Theme = 'system' | 'light' | 'dark'
const STORED = 'trunkline-theme'
const read = (): Theme => {
  // A browser that stores nothing throws.
  const stored = attempt(() => localStorage.getItem(STORED))
  return stored === 'light' || stored === 'dark' ? stored : 'system'
}

export const theme = signal<Theme>(read())

export const setTheme = (chosen: Theme): void => {
  theme.value = chosen
  attempt(() => localStorage.setItem(STORED, chosen))
  show()
}

export const show = (): void => {
  document.documentElement.dataset['theme'] = theme.peek()
}
