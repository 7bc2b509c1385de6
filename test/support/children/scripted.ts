/**
 * A fake server on pipes that does what the test says, message by message; it shares no code with `src/`.
 *
 * - `echo`: answers with its params; `print`: writes `params.hex` to stdout as it is, then answers
 * - `big`: answers with `params.bytes` of text, its id first or (`last`) behind the result, or (`hidden`) between others
 * - `stderr`: writes `params.bytes` to stderr in lines of 100, then answers; `note`: one line on stderr
 * - `exit`: answers, then exits with `params.code`; `closeStdin`; `info`: argv, env, cwd, pid
 * - `held`: starts a process outside of the group that holds our stdout, answers with its pid
 */
import { spawn } from 'node:child_process'
import { createInterface } from 'node:readline'
import { closeSync, writeSync } from 'node:fs'

interface Request {
  id?: number
  method: string
  params: { hex?: string; bytes?: number; code?: number; id?: 'first' | 'last' | 'hidden'; text?: string }
}

const write = (text: string | Buffer): void => {
  const bytes = Buffer.from(text)
  for (let at = 0; at < bytes.length;) {
    try {
      at += writeSync(1, bytes, at)
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'EAGAIN') throw error
    }
  }
}

const answer = (id: number | undefined, result: object): void => write(`${JSON.stringify({ jsonrpc: '2.0', id, result })}\n`)

const methods: Record<string, (request: Request) => void> = {
  echo: ({ id, params }) => answer(id, { params }),
  print: ({ id, params }) => {
    write(Buffer.from(params.hex ?? '', 'hex'))
    answer(id, {})
  },
  big: ({ id, params }) => {
    const order = { first: `"id":${id},"result":`, last: '"result":', hidden: `"result":` }[params.id ?? 'first']
    write(`{"jsonrpc":"2.0",${order}{"text":"`)
    const piece = Buffer.alloc(64 * 1024, 'x')
    for (let left = params.bytes ?? 0; left > 0; left -= piece.length) write(piece.subarray(0, left))
    const after = { first: '', last: `,"id":${id}`, hidden: `,"id":${id},"other":[]` }[params.id ?? 'first']
    write(`"}${after}}\n`)
  },
  stderr: ({ id, params }) => {
    const lines = Buffer.alloc(64 * 1000, `${'e'.repeat(99)}\n`)
    let left = params.bytes ?? 0
    const more = (): void => {
      for (; left > 0; left -= lines.length) {
        if (!process.stderr.write(lines)) {
          left -= lines.length
          process.stderr.once('drain', more)
          return
        }
      }
      answer(id, {})
    }
    more()
  },
  note: ({ id, params }) => {
    process.stderr.write(`${params.text}\n`, () => answer(id, {}))
  },
  exit: ({ id, params }) => {
    answer(id, {})
    process.exit(params.code)
  },
  closeStdin: ({ id }) => {
    process.stdin.destroy()
    closeSync(0) // Node keeps the descriptor open
    setInterval(() => {}, 1000)
    answer(id, {})
  },
  info: ({ id }) => answer(id, { argv: process.argv.slice(2), env: process.env, cwd: process.cwd(), pid: process.pid }),
  held: ({ id }) => {
    const holder = spawn(process.execPath, ['-e', 'setInterval(() => {}, 1000)'], { detached: true, stdio: ['ignore', 1, 2] })
    holder.once('spawn', () => answer(id, { pid: holder.pid }))
  },
}

createInterface(process.stdin).on('line', (line) => {
  const request = JSON.parse(line) as Request
  methods[request.method]?.(request)
})
