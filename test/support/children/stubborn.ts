/** A tree of `depth` generations, none of which heeds the end of stdin or SIGTERM; prints one line with each pid. */
import { spawn } from 'node:child_process'

const depth = Number(process.argv[2])
for (const signal of ['SIGTERM', 'SIGINT', 'SIGHUP'] as const) process.on(signal, () => {})
setInterval(() => {}, 1000)
process.stdin.resume()
process.stdout.on('error', () => {})
process.stdout.write(`{"jsonrpc":"2.0","method":"alive","params":{"pid":${process.pid}}}\n`)
if (depth > 1) spawn(process.execPath, [process.argv[1]!, String(depth - 1)], { stdio: ['ignore', 'inherit', 'inherit'] })
