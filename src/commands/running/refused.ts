/** What the running process refused in words, as the end of a command. */
import { AdminRefusal } from '../../admin/refusal.ts'
import { CommandError, EXIT } from '../terminal/io.ts'

export const explainRefusal = (error: unknown): never => {
  if (!(error instanceof AdminRefusal)) throw error
  const place = error.at === undefined ? '' : ` (at character ${error.at + 1})`
  throw new CommandError(error.status >= 500 ? EXIT.unreachable : EXIT.usage, `${error.message}${place}`)
}
