/** Errors for names that do not exist. */
import type { CommandPrinter } from '../../operator-command.ts'
import { CommandError, EXIT } from './io.ts'

/** `near`: similar names. */
export const unknownToolset = (toolset = '', command: CommandPrinter, near: readonly string[] = []): CommandError =>
  new CommandError(EXIT.config, `no toolset "${toolset}" is configured; ${didYouMean(near, command('check', '--json'))}`)

/** `near`: similar names. */
export const unknownName = (name: string, near: readonly string[], command: CommandPrinter): CommandError =>
  new CommandError(EXIT.usage, `nothing is called "${name}"; ${didYouMean(near, command('tools'))}`)

/** Suggests similar names, else the command that shows all. */
export const didYouMean = (near: readonly string[], command: string): string =>
  near.length === 0 ? `see all with: ${command}` : `did you mean ${near.join(', ')}?`
