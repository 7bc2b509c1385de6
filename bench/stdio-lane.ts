/** A pipe as a host has it: a message is a line, both ways. The process behind it belongs to whoever started it. */
import { type Lane, Pending, type Pipe } from './lane.ts'
import { splitter } from './streams.ts'

export const stdioLane = ({ input, output, lost }: Pipe): Lane => {
  const pending = new Pending()
  output.on(
    'data',
    splitter('\n', (line) => pending.take(line)),
  )
  return {
    frame: (message) => `${message}\n`,
    open: async () => ({
      send: (framed, id, onReply) => {
        pending.wait(id, onReply)
        input.write(framed, 'latin1')
      },
      lost,
      close: () => {},
    }),
    tell: async (framed) => void input.write(framed, 'latin1'),
    joined: () => {},
    async [Symbol.asyncDispose]() {},
  }
}
