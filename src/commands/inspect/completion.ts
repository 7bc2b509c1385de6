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
  readonly options: readonly {
    readonly flag: string
    /** `-c`. */
    readonly short: string | undefined
    readonly takesValue: boolean
    readonly description: string
  }[]
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
  command.options.flatMap(({ long, short, required, optional, description }) =>
    long == null ? [] : [{ flag: long, short, takesValue: required || optional, description }],
  )

/** Of quotes, descriptions contain single ones only. */
const quoted = (text: string): string => `'${text.replaceAll("'", '’')}'`
const flags = ({ words, options }: Word): string =>
  [...new Set([...words, ...options.map(({ flag }) => flag), '--help'])].join(' ')
/** The options that take a value, in both spellings. */
const valued = ({ options }: Word): readonly string[] => [
  ...new Set(options.flatMap(({ flag, short, takesValue }) => (takesValue ? [flag, ...(short == null ? [] : [short])] : []))),
]
const cases = (words: readonly Word[], line: (word: Word) => string): string => words.map(line).join('\n')

const SCRIPTS: Readonly<Record<string, (words: readonly Word[], own: Word) => string>> = {
  // The shell itself completes files wherever the function finds no word: it quotes blanks, and goes on behind folders.
  bash: (words, own) => `# ${NAME} completion for bash: source <(${NAME} completion bash)
_${NAME}() {
  local word=\${COMP_WORDS[COMP_CWORD]} before=\${COMP_WORDS[COMP_CWORD - 1]} command='' valued words i
  if [ "$word" = = ]; then word=''; elif [ "$before" = = ]; then before=\${COMP_WORDS[COMP_CWORD - 2]}; fi
  for ((i = 1; i < COMP_CWORD; i++)); do
    case \${COMP_WORDS[i]} in -c | --config | --state) i=$((i + 1)) ;; -*) ;; *) command=\${COMP_WORDS[i]}; break ;; esac
  done
  case $command in
${cases(words, (word) => `    ${word.name}) valued='${valued(word).join(' ')}' words='${flags(word)}' ;;`)}
    *) valued='${valued(own).join(' ')}' words='${words.map(({ name }) => name).join(' ')} ${flags(own)}' ;;
  esac
  COMPREPLY=()
  case " $valued " in *" $before "*) ;; *) COMPREPLY=($(compgen -W "$words" -- "$word")) ;; esac
}
complete -o default -F _${NAME} ${NAME}
`,
  zsh: (words, own) => `#compdef ${NAME}
# ${NAME} completion for zsh: ${NAME} completion zsh > a folder of $fpath/_${NAME}
_${NAME}() {
  local -a commands valued flags
  local command='' before=$words[CURRENT-1] i
  commands=(
${cases(words, ({ name, description }) => `    ${quoted(`${name}:${description.replaceAll(':', ' -')}`)}`)}
  )
  for ((i = 2; i < CURRENT; i++)); do
    case $words[i] in (-c | --config | --state) ((i++)) ;; (-*) ;; (*) command=$words[i]; break ;; esac
  done
  case $command in
${cases(words, (word) => `    ${word.name}) valued=(${valued(word).join(' ')}) flags=(${flags(word)}) ;;`)}
    *) valued=(${valued(own).join(' ')}) flags=(${flags(own)}) ;;
  esac
  if compset -P '--*=' || (( $valued[(Ie)$before] )); then
    _files
  elif [[ -z $command && $PREFIX != -* ]]; then
    _describe command commands
  else
    compadd -- $flags
    _files
  fi
}
if [ "$funcstack[1]" = _${NAME} ]; then _${NAME} "$@"; else compdef _${NAME} ${NAME}; fi
`,
  fish: (words, own) => `# ${NAME} completion for fish: ${NAME} completion fish > ~/.config/fish/completions/${NAME}.fish
function __${NAME}_is
  set -l command ''
  set -l isValue no
  for word in (commandline -opc)[2..-1]
    if test $isValue = yes
      set isValue no
      continue
    end
    switch $word
      case -c --config --state
        set isValue yes
      case '-*'
      case '*'
        set command $word
        break
    end
  end
  test "$command" = "$argv[1]"
end
${cases(words, ({ name, description }) => `complete -c ${NAME} -n "__${NAME}_is ''" -f -a ${name} -d ${quoted(description)}`)}
${cases([...words, own], ({ name, words: inner, options }) =>
  [
    ...inner.map((word) => `complete -c ${NAME} -n '__${NAME}_is ${name}' -f -a ${word}`),
    ...options.map(({ flag, short, takesValue, description }) => {
      const spellings = `${short == null ? '' : `-s ${short.slice(1)} `}-l ${flag.slice(2)}${takesValue ? ' -r' : ''}`
      return `complete -c ${NAME} -n "__${NAME}_is '${name}'" ${spellings} -d ${quoted(description)}`
    }),
  ].join('\n'),
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
