/**
 * A command of ours as an operator types it, for messages. All messages use this function: without the given `-c` a command would use
 * another configuration, or none.
 */

/** Prints a command for the same configuration. */
export type CommandPrinter = (...words: readonly string[]) => string

/**
 * `named`: the arguments of `-c`, unchanged; empty where the configuration was found without. They precede `--`: the words behind it are
 * the command of a server. Words are quoted for a shell.
 */
export const operatorCommand = (named: readonly string[], ...words: readonly string[]): string => {
  const end = words.includes('--') ? words.indexOf('--') : words.length
  const files = named.flatMap((file) => ['-c', file])
  return ['trunkline', ...words.slice(0, end), ...files, ...words.slice(end)].map(quoted).join(' ')
}

const quoted = (word: string): string => (/^[\w@%+=:,./~\\-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`)
