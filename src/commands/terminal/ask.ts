/** Questions on a terminal; without one, nothing is asked (PRODUCT 2). */
import { createInterface } from 'node:readline'
import { Writable } from 'node:stream'
import { CommandError, EXIT } from './io.ts'
import type { Io } from './io.ts'
import { prompt } from './print.ts'

export const canAsk = ({ stdin, stderr }: Io): boolean => stdin.isTTY === true && stderr.isTTY === true

/** The typed text, trimmed; `undefined`: there is no terminal, the input ended, or Ctrl-C. `isHidden`: without echo. */
export const ask = (io: Io, question: string, isHidden = false): Promise<string | undefined> => {
  if (!canAsk(io) || io.interrupted.aborted) return Promise.resolve(undefined)
  return new Promise((resolve) => {
    prompt(io, question)
    // The terminal echoes the text, unless it is in raw mode.
    const quiet = new Writable({ write: (_chunk, _encoding, done) => done() })
    const lines = createInterface({ input: io.stdin, output: quiet, terminal: isHidden })
    const end = (answer: string | undefined): void => {
      // Closing emits `close`, too, which would replace the answer.
      lines.off('close', stop)
      io.interrupted.removeEventListener('abort', stop)
      lines.close()
      if (isHidden) prompt(io, '\n')
      resolve(answer)
    }
    const stop = (): void => end(undefined)
    io.interrupted.addEventListener('abort', stop)
    lines.once('line', (line) => end(line.trim()))
    lines.once('SIGINT', stop)
    lines.once('close', stop)
  })
}

/** Yes or no; `standard` if the answer is empty or nothing can be asked. Ctrl-C is no answer: it ends the command. */
export const confirm = async (io: Io, question: string, standard: boolean): Promise<boolean> => {
  const answer = await ask(io, `${question} [${standard ? 'Y/n' : 'y/N'}] `)
  if (answer === undefined && io.interrupted.aborted) throw new CommandError(EXIT.interrupted, 'interrupted')
  if (answer === undefined && canAsk(io)) return false
  return answer === undefined || answer === '' ? standard : /^y(es)?$/i.test(answer)
}
