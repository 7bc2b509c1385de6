/**
 * The text formats of metrics: Prometheus 0.0.4, and OpenMetrics 1.0, which has exemplars and names counters differently. Families are
 * plain data; only this file formats them.
 */

export type Labels = Readonly<Record<string, string>>

export interface Sample {
  readonly labels: Labels
  readonly value: number
}

/** One observation of a bucket, with a reference to its call. */
export interface Exemplar {
  readonly labels: Labels
  readonly value: number
  /** Wall clock, seconds. */
  readonly at: number
}

export interface HistogramSample {
  readonly labels: Labels
  /** Observations per bucket, not cumulative; the last is above all bounds. */
  readonly counts: readonly number[]
  readonly sum: number
  /** By bucket. */
  readonly exemplars: readonly (Exemplar | undefined)[]
}

/** `name` without `_total`. */
export type Family =
  | { readonly type: 'counter' | 'gauge'; readonly name: string; readonly help: string; readonly samples: readonly Sample[] }
  | {
      readonly type: 'histogram'
      readonly name: string
      readonly help: string
      /** Upper bounds, ascending, without infinity. */
      readonly bounds: readonly number[]
      readonly samples: readonly HistogramSample[]
    }

export const PROMETHEUS_TYPE = 'text/plain; version=0.0.4; charset=utf-8'
export const OPEN_METRICS_TYPE = 'application/openmetrics-text; version=1.0.0; charset=utf-8'

/** Whether an `Accept` header prefers OpenMetrics to the text format; the text format is the one for any other header. */
export const prefersOpenMetrics = (accept: string): boolean => {
  const qualities = new Map<string, number>()
  for (const range of accept.split(',')) {
    const [type = '', ...parameters] = range.split(';').map((part) => part.trim().toLowerCase())
    const given = parameters.find((parameter) => parameter.startsWith('q='))
    const quality = given === undefined ? 1 : Number(given.slice(2))
    qualities.set(type, Math.max(qualities.get(type) ?? 0, Number.isNaN(quality) ? 0 : quality))
  }
  const open = qualities.get('application/openmetrics-text') ?? 0
  return open > 0 && open >= (qualities.get('text/plain') ?? qualities.get('text/*') ?? qualities.get('*/*') ?? 0)
}

/** Formats metrics. Families without samples are omitted. */
export const formatMetrics = (families: readonly Family[], isOpenMetrics: boolean): string => {
  const lines = families.filter(({ samples }) => samples.length > 0).flatMap((family) => formatFamily(family, isOpenMetrics))
  return `${[...lines, ...(isOpenMetrics ? ['# EOF'] : [])].join('\n')}\n`
}

const formatFamily = (family: Family, isOpenMetrics: boolean): readonly string[] => {
  const { name, help, type } = family
  const total = type === 'counter' ? `${name}_total` : name
  const shown = isOpenMetrics ? name : total
  const head = [`# HELP ${shown} ${escapeHelp(help)}`, `# TYPE ${shown} ${type}`]
  if (family.type !== 'histogram')
    return [...head, ...family.samples.map(({ labels, value }) => `${total}${formatLabels(labels)} ${formatNumber(value)}`)]
  return [...head, ...family.samples.flatMap((sample) => formatHistogram(name, family.bounds, sample, isOpenMetrics))]
}

const formatHistogram = (
  name: string,
  bounds: readonly number[],
  { labels, counts, sum, exemplars }: HistogramSample,
  isOpenMetrics: boolean,
): readonly string[] => {
  let count = 0
  const buckets = counts.map((own, at) => {
    count += own
    const bound = bounds[at]
    const le = bound === undefined ? '+Inf' : isOpenMetrics && Number.isInteger(bound) ? `${bound}.0` : String(bound)
    const exemplar = isOpenMetrics ? exemplars[at] : undefined
    const suffix =
      exemplar === undefined
        ? ''
        : ` # ${formatLabels(exemplar.labels)} ${formatNumber(exemplar.value)} ${exemplar.at.toFixed(3)}`
    return `${name}_bucket${formatLabels({ ...labels, le })} ${count}${suffix}`
  })
  return [...buckets, `${name}_sum${formatLabels(labels)} ${formatNumber(sum)}`, `${name}_count${formatLabels(labels)} ${count}`]
}

const formatLabels = (labels: Labels): string => {
  const all = Object.entries(labels).map(([name, value]) => `${name}="${escapeLabel(value)}"`)
  return all.length === 0 ? '' : `{${all.join(',')}}`
}

const formatNumber = (value: number): string => (value === Infinity ? '+Inf' : value === -Infinity ? '-Inf' : String(value))

/** Escapes a label, which may be any text of a server; lone surrogates are replaced. */
const escapeLabel = (text: string): string =>
  text.toWellFormed().replaceAll('\\', '\\\\').replaceAll('"', '\\"').replaceAll('\n', '\\n')

const escapeHelp = (text: string): string => text.replaceAll('\\', '\\\\').replaceAll('\n', '\\n')
