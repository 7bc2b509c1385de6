/** The baseline on pipes: passes bytes of stdin to a child and its bytes to stdout, without parsing. `node bench/pipe.ts COMMAND ARGS…`. */
import { spawn } from 'node:child_process'

const [file = '', ...args] = process.argv.slice(2)
const child = spawn(file, args, { stdio: ['pipe', 'pipe', 'inherit'] })
process.stdin.pipe(child.stdin)
child.stdout.pipe(process.stdout)
child.once('exit', () => process.exit())
