/** Durations, sizes and rates as texts; the code uses milliseconds and bytes. */
import { LONGEST_TIMER_MS } from '../../time/pause.ts'
import type { Rate } from '../../rpc/rate.ts'

const MILLISECONDS = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000 } as const
const BYTES = { B: 1, kB: 1e3, KB: 1e3, MB: 1e6, GB: 1e9, KiB: 1024, MiB: 1024 ** 2, GiB: 1024 ** 3 } as const

export const RATE_PATTERN = '^\\d+/\\d*(ms|s|m|h)$'
export const DURATION_PATTERN = '^\\d+(\\.\\d+)?(ms|s|m|h)$'
export const SIZE_PATTERN = '^\\d+(\\.\\d+)?(B|kB|KB|MB|GB|KiB|MiB|GiB)$'

/** `500ms`, `30s`, `5m`, `1.5h` in milliseconds; `undefined` for anything else and for more than 24 days. */
export const parseDuration = (value: unknown): number | undefined => {
  const milliseconds = measure(value, DURATION_PATTERN, MILLISECONDS)
  return milliseconds !== undefined && milliseconds <= LONGEST_TIMER_MS ? milliseconds : undefined
}

/** `64KiB`, `4MiB`, `16MB` in bytes; `undefined` for anything else. */
export const parseSize = (value: unknown): number | undefined => measure(value, SIZE_PATTERN, BYTES)

/** `20/s`, `100/m`, `5/2m`; `undefined` for anything else, for 0, and for more than a million. */
export const parseRate = (value: unknown): Rate | undefined => {
  if (typeof value !== 'string' || !new RegExp(RATE_PATTERN).test(value)) return undefined
  const [amount, period = ''] = value.split('/')
  const periodMs = parseDuration(/^\d/.test(period) ? period : `1${period}`)
  const isRate = Number(amount) >= 1 && Number(amount) <= 1_000_000 && periodMs !== undefined && periodMs > 0
  return isRate ? { amount: Number(amount), periodMs, text: value } : undefined
}

/** The shortest equal form: 90,000 is `90s`, 3,600,000 is `1h`. */
export const formatDuration = (milliseconds: number): string => inLargest(milliseconds, MILLISECONDS)
export const formatSize = (bytes: number): string => inLargest(bytes, { B: 1, KiB: BYTES.KiB, MiB: BYTES.MiB, GiB: BYTES.GiB })

const measure = (value: unknown, pattern: string, units: Readonly<Record<string, number>>): number | undefined => {
  if (typeof value !== 'string' || !new RegExp(pattern).test(value)) return undefined
  const [, number, unit = ''] = /^([\d.]+)(\D+)$/.exec(value) ?? []
  const amount = Math.round(Number(number) * (units[unit] ?? NaN))
  return Number.isSafeInteger(amount) ? amount : undefined
}

const inLargest = (amount: number, units: Readonly<Record<string, number>>): string => {
  const all = Object.entries(units)
  // Cast: `all` is not empty.
  const [unit, size] = all.findLast(([, size]) => amount >= size && amount % size === 0) ?? all[0]!
  return `${amount / size}${unit}`
}
