/**
 * A command of ours as an operator types it, for messages that name one. The only place where such a command is spelled: without the
 * `-c` that was given it would be about another configuration, or about none.
 */

/** Prints a command, with all that it needs to be about the same configuration. */
export type CommandPrinter = (...words: readonly string[]) => string

/** `named`: what `-c` was given, as it was given; empty where the configuration was found without. Words are quoted for a shell. */
export const operatorCommand = (named: readonly string[], ...words: readonly string[]): string =>
  ['trunkline', ...words, ...named.flatMap((file) => ['-c', file])].map(quoted).join(' ')

const quoted = (word: string): string => (/^[\w@%+=:,./~\\-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`)
