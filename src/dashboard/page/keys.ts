/** Keyboard shortcuts. Each screen registers its own; the help is built from the same table. */
import { useLayoutEffect } from 'preact/hooks'
import { signal } from '@preact/signals'
import { go } from './route.ts'

export interface Key {
  /** `j`, `g t`, `Enter`. */
  readonly key: string
  readonly does: string
  readonly run: () => void
}

/** Layers of the whole dashboard, then of the screen; the last layer with the key handles it. */
const layers: (readonly Key[])[] = []
/** Incremented with each change. */
export const keysVersion = signal(0)
export const isHelpOpen = signal(false)

export const SCREENS = [
  { path: '/traffic', name: 'Traffic', key: 't' },
  { path: '/catalog', name: 'Catalog', key: 'c' },
  { path: '/servers', name: 'Servers', key: 's' },
  { path: '/toolsets', name: 'Toolsets', key: 'o' },
  { path: '/changes', name: 'Changes', key: 'd' },
  { path: '/health', name: 'Health', key: 'h' },
] as const

/** Registers keys while the component is mounted. Keys of the unmounted one are removed at once, not after the next frame. */
export const useKeys = (keys: readonly Key[]): void => {
  useLayoutEffect(() => {
    layers.push(keys)
    keysVersion.value++
    return () => {
      layers.splice(layers.indexOf(keys), 1)
      keysVersion.value++
    }
  })
}

/** The keys that are active now, without duplicates. */
export const allKeys = (): readonly Key[] => {
  const known = new Map<string, Key>()
  for (const key of layers.flat()) known.set(key.key, key)
  return [...known.values()]
}

export const GLOBAL_KEYS: readonly Key[] = [
  ...SCREENS.map(({ path, name, key }): Key => ({ key: `g ${key}`, does: name, run: () => go(path) })),
  { key: '?', does: 'this help', run: () => (isHelpOpen.value = !isHelpOpen.peek()) },
]

const isCheckbox = (target: EventTarget | null): boolean => target instanceof HTMLInputElement && target.type === 'checkbox'

const isTyping = (target: EventTarget | null): boolean =>
  target instanceof HTMLElement &&
  !isCheckbox(target) &&
  (target.isContentEditable || /^(?:INPUT|TEXTAREA|SELECT)$/.test(target.tagName))

/** Time after `g` in which the second key counts. */
const CHORD_MS = 1_500

export const startKeys = (): void => {
  let before = ''
  let beforeMs = 0
  document.addEventListener('keydown', (event) => {
    if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey || event.isComposing) return
    const { target, key } = event
    if (isTyping(target)) {
      if (key === 'Escape' && target instanceof HTMLElement) target.blur()
      return
    }
    if (document.querySelector('dialog[open]') !== null && key !== '?') return
    // A focused button, link or checkbox handles its own keys.
    if (isCheckbox(target) && key === ' ') return
    const isPressed = target instanceof Element && target.closest('a, button, summary') !== null
    if (isPressed && (key === 'Enter' || key === ' ')) return
    const chord = performance.now() - beforeMs < CHORD_MS ? `${before} ${key}` : ''
    before = key
    beforeMs = performance.now()
    const keys = allKeys()
    const found = keys.find((one) => one.key === chord) ?? keys.find((one) => one.key === key)
    if (found === undefined) return
    event.preventDefault()
    before = ''
    found.run()
  })
}

/** Moves the focus between the rows of a list (`[data-row]`), from the focused row. */
export const moveRow = (step: 1 | -1): void => {
  const rows = [...document.querySelectorAll<HTMLElement>('[data-row]')]
  const now = rows.findIndex((row) => row.contains(document.activeElement))
  const next = rows.at(now === -1 ? (step === 1 ? 0 : -1) : Math.min(Math.max(now + step, 0), rows.length - 1))
  const isOne = next !== undefined && next.matches('a, button, [tabindex]')
  const focusable = isOne ? next : next?.querySelector<HTMLElement>('a, button, [tabindex]')
  focusable?.focus()
  next?.scrollIntoView({ block: 'nearest' })
}

export const ROW_KEYS: readonly Key[] = [
  { key: 'j', does: 'next row', run: () => moveRow(1) },
  { key: 'k', does: 'row before', run: () => moveRow(-1) },
]
