/**
 * `node bench/scan.ts`: the cost of reading a message, in ns per byte: a result of a server with its URIs exposed (lenient), and the same text as
 * arguments of a host's call (strict), with and without the kernel, compared with `JSON.parse`. CPU time, the least of several rounds.
 */
import { exposeResult } from '../src/catalog/view/expose-result.ts'
import { readHostMessage, readServerMessage } from '../src/wire/message/envelope.ts'
import { Scanner } from '../src/wire/json/scan.ts'
import { createAnswers } from './answers.ts'
import { PAYLOAD_KINDS } from './payload-kinds.ts'
import { NONCE_LENGTH, toolOf, type ToolName } from './payload.ts'

const LIMITS = { maxDepth: 64, maxValues: 1_000_000, maxKeysPerObject: 100_000 }
const ROUNDS = 9
const ROUND_BYTES = 8e6

const answer = createAnswers('legacy')
const resultOf = (tool: string): Buffer => {
  const params = { name: tool, arguments: { nonce: '0'.repeat(NONCE_LENGTH) } }
  const pieces = answer({ id: 5, method: 'tools/call', params }) ?? []
  return Buffer.concat(pieces.map((piece) => (typeof piece === 'string' ? Buffer.from(piece, 'latin1') : piece)))
}

/** ns a byte. */
const measure = (bytes: number, work: () => void): string => {
  const times = Math.max(2, Math.ceil(ROUND_BYTES / (bytes + 2_000)))
  let least = Infinity
  for (let round = -1; round < ROUNDS; round++) {
    const started = process.cpuUsage()
    for (let time = 0; time < times; time++) work()
    const { user, system } = process.cpuUsage(started)
    if (round >= 0) least = Math.min(least, (1_000 * (user + system)) / times / bytes)
  }
  return least.toFixed(least < 10 ? 2 : 1)
}

console.log(
  '| payload | lenient | without the kernel | strict | without the kernel | JSON.parse |\n| --- | --- | --- | --- | --- | --- |',
)
for (const [tool, size] of [
  ['t100', '100 B'],
  ['t10k', '10 KB'],
  ['t1m', '1 MB'],
] satisfies [ToolName, string][])
  for (const kind of tool === 't100' ? (['prose'] as const) : PAYLOAD_KINDS) {
    const result = resultOf(toolOf(tool, kind))
    const head = '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"x","arguments":'
    const call = Buffer.concat([Buffer.from(head), result, Buffer.from('}}')])
    const plain = (bytes: Buffer, strict: boolean) => () => new Scanner(bytes, { strict, isPlain: true }).members()
    const figures = [
      measure(result.length, () => exposeResult(readServerMessage(result).result!, 'content', (uri) => uri)),
      measure(result.length, plain(result, false)),
      measure(call.length, () => readHostMessage(call, LIMITS)),
      measure(call.length, plain(call, true)),
      measure(result.length, () => JSON.parse(result.toString())),
    ]
    console.log(`| ${kind}, ${size} | ${figures.join(' | ')} |`)
  }
