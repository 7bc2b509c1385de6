import { describe, expect, test } from 'vitest'
import { Readiness } from '../../../src/host/http/health.ts'

const END = 100_000

/** How long it takes until proxies have noticed; probes at these milliseconds from the end, those before it negative. */
const noticedAfter = (configuredMs: number | undefined, probes: readonly number[]): number => {
  let nowMs = 0
  const readiness = new Readiness(() => nowMs)
  const probeAt = (from: number, to: number): void => {
    for (const at of probes) if (at >= from && at < to) expect(readiness.probe()).toBe(at < 0)
  }
  for (nowMs = END - 70_000; nowMs < END; nowMs += 50) probeAt(nowMs - END, nowMs - END + 50)
  readiness.end()
  for (; !readiness.isNoticed(configuredMs); nowMs += 50) probeAt(nowMs - END, nowMs - END + 50)
  return nowMs - END
}

describe('F-22 how long it is served on after /readyz turned 503', () => {
  test.each([
    ['no probe ever', [], 0],
    ['the last probe over a minute ago', [-61_000], 0],
    ['a probe in the last minute, and none since', [-59_000], 10_000],
    ['probes each second', [-1_000, 0, 1_000, 2_000, 3_000, 4_000], 5_000],
    ['probes each 2 s, as HAProxy has it', [-1_000, 1_000, 3_000, 5_000, 7_000], 5_250],
    ['probes each 3 s', [-1_000, 2_000, 5_000, 8_000], 8_250],
    ['probes each 10 s, as Kubernetes has it', [-1_000, 9_000], 10_000],
  ])('%s', (_name, probes, expected) => {
    expect(noticedAfter(undefined, probes)).toBe(expected)
  })
  test('what is configured holds, whoever probes', () => {
    expect(noticedAfter(3_000, [])).toBe(3_000)
    expect(noticedAfter(3_000, [-1_000])).toBe(3_000)
    expect(noticedAfter(0, [-1_000])).toBe(0)
  })
})
