/** Formats figures for display. Numbers of one column have one form, so that they are comparable. */

/** Milliseconds: `0.4 ms`, `312 ms`, `4.20 s`, `2 m 05 s`. */
export const formatMs = (ms: number): string => {
  if (ms < 10) return `${ms.toFixed(1)} ms`
  if (ms < 1_000) return `${Math.round(ms)} ms`
  if (ms < 60_000) return `${(ms / 1_000).toFixed(2)} s`
  const seconds = Math.round(ms / 1_000)
  if (seconds < 3_600) return `${Math.floor(seconds / 60)} m ${String(seconds % 60).padStart(2, '0')} s`
  const minutes = Math.round(seconds / 60)
  return minutes < 2_880
    ? `${Math.floor(minutes / 60)} h ${String(minutes % 60).padStart(2, '0')} m`
    : `${Math.floor(minutes / 1_440)} days`
}

/** `214 B`, `7.9 KiB`, `100 MiB`. */
export const formatBytes = (bytes: number): string => {
  if (bytes < 1_000) return `${bytes} B`
  const units = ['KiB', 'MiB', 'GiB']
  let value = bytes / 1_024
  let unit = 0
  while (value >= 1_000 && unit < units.length - 1) {
    value /= 1_024
    unit++
  }
  return `${value < 10 ? value.toFixed(1) : Math.round(value)} ${units[unit]}`
}

/** `999`, `2.0k`, `14k`. */
export const formatCount = (count: number): string => {
  if (count < 1_000) return String(count)
  if (count < 1_000_000) return `${count < 10_000 ? (count / 1_000).toFixed(1) : Math.round(count / 1_000)}k`
  return `${(count / 1_000_000).toFixed(1)}M`
}

/** The local time of day of an ISO date: `20:15:03.123`. */
export const formatTime = (at: string): string => {
  const date = new Date(at)
  if (Number.isNaN(date.getTime())) return '—'
  const two = (value: number): string => String(value).padStart(2, '0')
  return `${two(date.getHours())}:${two(date.getMinutes())}:${two(date.getSeconds())}.${String(date.getMilliseconds()).padStart(3, '0')}`
}

/** The time before `nowMs`: `12 s ago`. */
export const formatAgo = (at: string, nowMs: number): string => {
  const seconds = Math.max(0, Math.round((nowMs - Date.parse(at)) / 1_000))
  if (Number.isNaN(seconds)) return '—'
  if (seconds < 60) return `${seconds} s ago`
  if (seconds < 3_600) return `${Math.floor(seconds / 60)} min ago`
  return seconds < 172_800 ? `${Math.floor(seconds / 3_600)} h ago` : `${Math.floor(seconds / 86_400)} days ago`
}

export const formatPercent = (share: number): string => (share > 0 && share < 0.01 ? '< 1 %' : `${Math.round(share * 100)} %`)

/** `1 call`, `2 calls`. */
export const plural = (count: number, one: string, many = `${one}s`): string =>
  `${formatCount(count)} ${count === 1 ? one : many}`
