/**
 * The kinds of payload over which the goals apply. Each consists of complete units of JSON text, so that
 * no escape and no character is cut; the rest is filled with dots. `objects` is structured content beside a short text.
 */

export const PAYLOAD_KINDS = ['prose', 'dense', 'nested', 'k8s', 'base64', 'cjk', 'objects', 'mixed'] as const
export type PayloadKind = (typeof PAYLOAD_KINDS)[number]

/** A value as the text of a JSON string, without its quotes. */
const asText = (value: unknown): string => JSON.stringify(typeof value === 'string' ? value : JSON.stringify(value)).slice(1, -1)

/** About 40 bytes in ordinary notation; every one differs. */
const record = (at: number): object => ({ id: at, name: `item-${at % 97}`, ok: at % 3 === 0, score: (at % 1_000) / 8 })

/** An object of Kubernetes in short: `"resource…` and quotes all over. */
const pod = (at: number): object => ({
  kind: 'Pod',
  metadata: { name: `web-${at}`, namespace: 'default', resourceVersion: `${100_000 + at}`, labels: { app: 'web' } },
  spec: { containers: [{ name: 'web', image: 'nginx:1.29', resources: { limits: { cpu: '500m' }, requests: { cpu: '5m' } } }] },
})

const BASE64 = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/'

/** One unit of text, as it stands in a JSON string. `at` counts the units. */
const UNITS: Readonly<Record<Exclude<PayloadKind, 'objects' | 'mixed'>, (at: number) => string>> = {
  prose: () => String.raw`The quick brown fox jumps over the lazy dog and the gateway carries its words on.\n`,
  dense: (at) => asText(`  if (row.kind === "text") send("block", ${at % 10}, row);\n`),
  nested: (at) => asText(JSON.stringify({ log: JSON.stringify(record(at)) })),
  k8s: (at) => asText(pod(at)),
  base64: (at) => Array.from({ length: 64 }, (_, index) => BASE64[(at * 31 + index * index * 7) % 64]).join(''),
  cjk: () => '模型上下文协议让应用程序以标准的方式把数据和工具交给语言模型。',
}
const MIXED = ['prose', 'dense', 'cjk', 'k8s', 'prose', 'nested', 'base64'] as const

const unitOf = (kind: Exclude<PayloadKind, 'objects'>, at: number): string =>
  kind === 'mixed' ? UNITS[MIXED[at % MIXED.length]!](at) : UNITS[kind](at)

/** `bytes` of JSON text. */
const filled = (bytes: number, unit: (at: number) => string): Buffer => {
  const units: Buffer[] = []
  let left = bytes
  for (let at = 0; ; at++) {
    const next = Buffer.from(unit(at))
    if (next.length > left) break
    units.push(next)
    left -= next.length
  }
  return Buffer.concat([...units, Buffer.alloc(left, '.')])
}

export interface Payload {
  /** What stands between the two nonces of the text. */
  readonly text: Buffer
  /** Members of the result behind `content`, each with its comma. */
  readonly members: Buffer
}

/** A result of `bytes` in all; `around`: those of its text that are not of the payload. */
export const payloadOf = (kind: PayloadKind, bytes: number, around: number): Payload => {
  const size = bytes - around
  if (kind !== 'objects') return { text: filled(size, (at) => unitOf(kind, at)), members: Buffer.alloc(0) }
  const [head, tail] = [',"structuredContent":{"items":[', '{}]}']
  const items = filled(Math.max(0, size - head.length - tail.length), (at) => `${JSON.stringify(record(at))},`)
  // Dots are no JSON outside a string.
  const end = items.lastIndexOf(',') + 1
  return { text: Buffer.alloc(0), members: Buffer.concat([Buffer.from(head), items.fill(' ', end), Buffer.from(tail)]) }
}
