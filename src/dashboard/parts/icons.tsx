/** Line icons, drawn for a grid of 16 pixels. */
import type { JSX } from 'preact'

const PATHS = {
  traffic: 'M2 4h12M2 8h7M2 12h10',
  catalog: 'M2.5 3.5h4v4h-4zM9.5 3.5h4v4h-4zM2.5 10h4v3h-4zM9.5 10h4v3h-4z',
  servers: 'M2.5 3h11v4h-11zM2.5 9h11v4h-11zM5 5h.01M5 11h.01',
  toolsets: 'M2.5 5h11M2.5 11h11M6 3v4M10 9v4',
  changes: 'M4 2.5v8a2 2 0 0 0 2 2h6M9.5 10l2.5 2.5L9.5 15M4 5.5h5',
  health: 'M1.5 8.5h3l2-5 3 9 2-4h3',
  search: 'M7 2.5a4.5 4.5 0 1 0 0 9 4.5 4.5 0 0 0 0-9zM10.5 10.5 14 14',
  pause: 'M5.5 3.5v9M10.5 3.5v9',
  play: 'M5 3l8 5-8 5z',
  pin: 'M8 9v5M5 2.5h6l-1 4 2 2.5H4l2-2.5z',
  back: 'M9.5 3.5 5 8l4.5 4.5',
  next: 'M6.5 3.5 11 8l-4.5 4.5',
  light: 'M8 5a3 3 0 1 0 0 6 3 3 0 0 0 0-6zM8 1v1.5M8 13.5V15M1 8h1.5M13.5 8H15M3 3l1 1M12 12l1 1M13 3l-1 1M4 12l-1 1',
  dark: 'M13.5 9.5A6 6 0 0 1 6.5 2.5a6 6 0 1 0 7 7z',
  system: 'M2 3h12v8H2zM6 14h4M8 11v3',
  keys: 'M1.5 4h13v8h-13zM4 7h.01M7 7h.01M10 7h.01M12 7h.01M5 9.5h6',
  leave: 'M6 2.5H3v11h3M7 8h7M11 5l3 3-3 3',
  trouble: 'M8 2 1.5 13.5h13zM8 6.5v3.5M8 12h.01',
  done: 'M3 8.5l3.5 3.5L13 4.5',
} as const

export type IconName = keyof typeof PATHS

export const Icon = ({ name }: { readonly name: IconName }): JSX.Element => (
  <svg class="icon" viewBox="0 0 16 16" aria-hidden="true" focusable="false">
    <path d={PATHS[name]} />
  </svg>
)

/** The logo of Trunkline: three lines that join into one outgoing line. */
export const Mark = (): JSX.Element => (
  <svg class="mark" viewBox="0 0 32 32" aria-hidden="true" focusable="false">
    <rect width="32" height="32" rx="8" />
    <path d="M6 9h5c4 0 4 7 8 7h7M6 23h5c4 0 4-7 8-7M6 16h13" />
  </svg>
)
