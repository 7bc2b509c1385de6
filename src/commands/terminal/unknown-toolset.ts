/** The error for a toolset that is not configured. */
import type { CommandPrinter } from '../../operator-command.ts'
import { CommandError, EXIT } from './io.ts'

export const unknownToolset = (toolset = '', command: CommandPrinter): CommandError =>
  new CommandError(EXIT.config, `no toolset "${toolset}" is configured; see which are: ${command('check', '--json')}`)
