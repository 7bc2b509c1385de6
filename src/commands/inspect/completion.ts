/** `trunkline completion SHELL`: a script that completes commands and options, generated from the command line itself. */
import type { Command } from 'commander'
import { CommandError, EXIT } from '../terminal/io.ts'
import type { Io } from '../terminal/io.ts'
import { printJson, printVerbatim } from '../terminal/print.ts'
import { ownValue } from '../../values/own-value.ts'

interface Word {
  readonly name: string
  readonly description: string
  /** Its own commands. */
  readonly words: readonly string[]
  readonly options: readonly { readonly flag: string; readonly description: string }[]
}

const NAME = 'trunkline'

export const completion = async (io: Io, program: Command, shell: string, json: boolean): Promise<number> => {
  const script = ownValue(SCRIPTS, shell)
  if (script === undefined)
    throw new CommandError(EXIT.usage, `no script for "${shell}"; there are: ${Object.keys(SCRIPTS).join(', ')}`)
  const own = { name: '', description: '', words: [], options: optionsOf(program) }
  const words = program.commands.flatMap((one) => [one.name(), ...one.aliases()].map((name) => ({ ...wordOf(one), name })))
  const text = script(words, own)
  await (json ? printJson(io, { shell, script: text }) : printVerbatim(io, text))
  return EXIT.ok
}

const wordOf = (command: Command): Word => ({
  name: command.name(),
  description: command.description(),
  words: command.commands.map((one) => one.name()),
  options: [command, ...command.commands].flatMap(optionsOf),
})

const optionsOf = (command: Command): Word['options'] =>
  command.options.flatMap(({ long, description }) => (long == null ? [] : [{ flag: long, description }]))

/** Of quotes, descriptions contain single ones only. */
const quoted = (text: string): string => `'${text.replaceAll("'", '’')}'`
const flags = ({ words, options }: Word): string =>
  [...new Set([...words, ...options.map(({ flag }) => flag), '--help'])].join(' ')
const cases = (words: readonly Word[], line: (word: Word) => string): string => words.map(line).join('\n')

const SCRIPTS: Readonly<Record<string, (words: readonly Word[], own: Word) => string>> = {
  bash: (words, own) => `# ${NAME} completion for bash: source <(${NAME} completion bash)
_${NAME}() {
  local word=\${COMP_WORDS[COMP_CWORD]} command='' words i
  for ((i = 1; i < COMP_CWORD; i++)); do
    case \${COMP_WORDS[i]} in -c | --config | --state) i=$((i + 1)) ;; -*) ;; *) command=\${COMP_WORDS[i]}; break ;; esac
  done
  case $command in
${cases(words, (word) => `    ${word.name}) words='${flags(word)}' ;;`)}
    *) words='${words.map(({ name }) => name).join(' ')} ${flags(own)}' ;;
  esac
  COMPREPLY=($(compgen -W "$words" -- "$word"))
  if [ \${#COMPREPLY[@]} -eq 0 ]; then COMPREPLY=($(compgen -f -- "$word")); fi
}
complete -F _${NAME} ${NAME}
`,
  zsh: (words, own) => `#compdef ${NAME}
# ${NAME} completion for zsh: ${NAME} completion zsh > a folder of $fpath/_${NAME}
_${NAME}() {
  local -a commands
  commands=(
${cases(words, ({ name, description }) => `    ${quoted(`${name}:${description.replaceAll(':', ' -')}`)}`)}
  )
  if (( CURRENT == 2 )) && [[ $words[2] != -* ]]; then
    _describe command commands
    return
  fi
  case $words[2] in
${cases(words, (word) => `    ${word.name}) compadd -- ${flags(word)} ;;`)}
    *) compadd -- ${flags(own)} ;;
  esac
  _files
}
if [ "$funcstack[1]" = _${NAME} ]; then _${NAME} "$@"; else compdef _${NAME} ${NAME}; fi
`,
  fish: (words, own) => `# ${NAME} completion for fish: ${NAME} completion fish > ~/.config/fish/completions/${NAME}.fish
${cases(words, ({ name, description }) => `complete -c ${NAME} -n __fish_use_subcommand -f -a ${name} -d ${quoted(description)}`)}
${cases([...words, own], ({ name, options }) =>
  options
    .map(({ flag, description }) => {
      const when = name === '' ? '__fish_use_subcommand' : `'__fish_seen_subcommand_from ${name}'`
      return `complete -c ${NAME} -n ${when} -l ${flag.slice(2)} -d ${quoted(description)}`
    })
    .join('\n'),
)}
`,
  powershell: (words, own) => `# ${NAME} completion for PowerShell: ${NAME} completion powershell | Out-String | Invoke-Expression
Register-ArgumentCompleter -Native -CommandName ${NAME} -ScriptBlock {
  param($word, $ast, $position)
  $command = $ast.CommandElements | Select-Object -Skip 1 | ForEach-Object { "$_" } | Where-Object { $_ -notlike '-*' -and $_ -ne $word } | Select-Object -First 1
  $words = switch ($command) {
${cases(words, (word) => `    '${word.name}' { '${flags(word)}' }`)}
    default { '${words.map(({ name }) => name).join(' ')} ${flags(own)}' }
  }
  $words -split ' ' | Where-Object { $_ -like "$word*" } | ForEach-Object { [System.Management.Automation.CompletionResult]::new($_) }
}
`,
}
