/** What is said of a toolset that nobody configured. */
import { CommandError, EXIT } from './io.ts'

export const unknownToolset = (toolset = ''): CommandError =>
  new CommandError(EXIT.config, `no toolset "${toolset}" is configured; see which are: trunkline check --json`)
