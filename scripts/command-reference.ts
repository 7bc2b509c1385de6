/** docs/commands.md: an introduction, and every command with its options as in `--help`. */
import { readFile } from 'node:fs/promises'
import { commandTable } from '../src/cli.ts'

/** Options of every command, listed once. */
const COMMON = new Set(['-c, --config <file>', '--state <folder>', '--json'])

export const renderCommands = async (): Promise<string> => {
  const intro = await readFile(new URL('commands-intro.md', import.meta.url), 'utf8')
  const sections = commandTable().map(({ name, args, description, options }) => {
    const own = options.filter(({ flags }) => !COMMON.has(flags))
    const rows = own.map((option) => `| \`${cell(option.flags)}\` | ${cell(option.description)} |`)
    const table = rows.length === 0 ? '' : `\n| option | |\n| --- | --- |\n${rows.join('\n')}\n`
    return `### trunkline ${name}\n\n\`trunkline ${[name, args].filter(Boolean).join(' ')}\`: ${description}.\n${table}`.replaceAll(
      /([.?!])\.\n/g,
      '$1\n',
    )
  })
  return `${intro}\n## All commands\n\n${sections.join('\n')}`
}

const cell = (text: string): string => text.replaceAll('|', '\\|')
