/**
 * Variables that a container gets from the environment of the program that starts it: `docker run -e NAME`, without a value. A process gets
 * the variables of its entry only, so these must be added to it.
 */
import { posix, win32 } from 'node:path'

const PROGRAM = /^(docker|podman|nerdctl)(\.exe)?$/i
/** Options of `run` without a value; every other one takes the next word. */
const FLAGS =
  /^(-[itdPq]+|--(rm|init|privileged|read-only|interactive|tty|detach|quiet|publish-all|no-healthcheck|oom-kill-disable|replace))$/
const NAME = /^[A-Za-z_]\w*$/

/** The names, without those that have a value in the arguments. */
export const forwardedVariables = (command: string, args: readonly string[]): readonly string[] => {
  const run = args.indexOf('run')
  if (run < 0 || !PROGRAM.test(posix.basename(win32.basename(command)))) return []
  const names: string[] = []
  for (let at = run + 1; at < args.length; at++) {
    const word = args[at] ?? ''
    // The image, and behind it its own arguments.
    if (!word.startsWith('-')) break
    const [, written] = /^(?:-e|--env=)(.+)$/.exec(word) ?? []
    const takesNext = written === undefined && !FLAGS.test(word) && !word.includes('=')
    const variable = word === '-e' || word === '--env' ? args[at + 1] : written
    if (variable !== undefined && NAME.test(variable)) names.push(variable)
    if (takesNext) at += 1
  }
  return names
}
