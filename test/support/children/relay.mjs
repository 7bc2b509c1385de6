/**
 * A child process without a will of its own: what it is given on stdin goes to the port named on its command line, what comes
 * from there is obeyed: `relay.mjs [--plain] PORT`. Plain JavaScript, since taking types out doubles the time of a start. Frames: one letter,
 * the length as four bytes, the content. `o`: stdout, `e`: stderr, `x`: exit with code. `--plain`: no frames, all is for stdout.
 */
import { connect } from 'node:net'
import { writeSync } from 'node:fs'

const isPlain = process.argv[2] === '--plain'
const socket = connect(Number(process.argv.at(-1)), '127.0.0.1')
if (!isPlain) socket.write(`${process.pid}\n`)
process.stdin.pipe(socket)
socket.on('error', () => process.exit(1))
socket.on('close', () => process.exit(0))

const write = (descriptor, bytes) => {
  for (let at = 0; at < bytes.length;) {
    try {
      at += writeSync(descriptor, bytes, at)
    } catch (error) {
      if (error.code !== 'EAGAIN') throw error
    }
  }
}

let pending = Buffer.alloc(0)
if (isPlain) socket.pipe(process.stdout)
else
  socket.on('data', (chunk) => {
    pending = Buffer.concat([pending, chunk])
    while (pending.length >= 5) {
      const end = 5 + pending.readUInt32BE(1)
      if (pending.length < end) return
      const letter = String.fromCharCode(pending[0])
      const content = pending.subarray(5, end)
      pending = pending.subarray(end)
      if (letter === 'o') write(1, content)
      else if (letter === 'e') write(2, content)
      else process.exit(Number(content.toString()))
    }
  })
