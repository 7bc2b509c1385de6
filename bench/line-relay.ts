/**
 * The baseline between two pipes: reads lines, parses each one as JSON and relays it unchanged, in both directions. It is the minimum for a
 * program that inspects messages. `node bench/line-relay.ts parsed COMMAND ARGS…`; with `unparsed` it looks at no message, which is the
 * minimum for any program of Node that handles one message at a time.
 */
import { spawn } from 'node:child_process'
import type { Readable, Writable } from 'node:stream'

const LF = 10

const [mode, file = '', ...args] = process.argv.slice(2)
const isParsed = mode === 'parsed'

const isMessage = (line: Buffer): boolean => (JSON.parse(line.toString()) as { jsonrpc?: unknown }).jsonrpc === '2.0'

const relay = (from: Readable, to: Writable): void => {
  let pieces: Buffer[] = []
  from.on('data', (chunk: Buffer) => {
    let start = 0
    for (let end = chunk.indexOf(LF); end !== -1; end = chunk.indexOf(LF, start)) {
      const last = chunk.subarray(start, end + 1)
      const line = pieces.length === 0 ? last : Buffer.concat([...pieces, last])
      pieces = []
      start = end + 1
      if (!isParsed || isMessage(line)) to.write(line)
    }
    if (start < chunk.length) pieces.push(chunk.subarray(start))
  })
}

const child = spawn(file, args, { stdio: ['pipe', 'pipe', 'inherit'] })
relay(process.stdin, child.stdin)
relay(child.stdout, process.stdout)
process.stdin.once('end', () => child.stdin.end())
child.once('exit', () => process.exit())
