/** A pipe of a host: a message is a line, in both directions. The caller owns the process. */
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
