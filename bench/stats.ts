/** Order statistics of a few rounds: medians, not means, because other load only increases values. */

/** The value below which a share `q` (0..1) lies, interpolated. NaN of an empty list. */
export const quantile = (values: ArrayLike<number>, q: number): number => {
  const sorted = Float64Array.from(values).sort()
  const at = (sorted.length - 1) * q
  const below = sorted[Math.floor(at)] ?? Number.NaN
  return below + ((sorted[Math.ceil(at)] ?? below) - below) * (at % 1)
}

export interface Spread {
  readonly median: number
  /** First and third quartile. */
  readonly q1: number
  readonly q3: number
  readonly min: number
  readonly max: number
}

export const spread = (values: ArrayLike<number>): Spread => ({
  median: quantile(values, 0.5),
  q1: quantile(values, 0.25),
  q3: quantile(values, 0.75),
  min: quantile(values, 0),
  max: quantile(values, 1),
})
