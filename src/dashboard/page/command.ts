/** Commands shown to the user, for the configuration of the running process. */
import { operatorCommand } from '../../operator-command.ts'
import { session } from './api.ts'

export const commandOf = (...words: readonly string[]): string => operatorCommand(session.value?.named ?? [], ...words)
