/**
 * `trunkline doctor`: problems of the environment that keep servers from working, each with a remedy. `--fix` repairs those that can be
 * repaired safely. Checks run concurrently and have time limits.
 */
import { chmod } from 'node:fs/promises'
import { connectAdmin } from '../../admin/socket/client.ts'
import type { Configuration } from '../../config/options.ts'
import type { RuntimeEnvironment } from '../../config/runtime-environment.ts'
import { editing } from '../../host-files/edit/change.ts'
import { replaceScalar } from '../../host-files/edit/edit-yaml.ts'
import { readOurFile, updateOurFile } from '../../host-files/our-file.ts'
import { refuseChangeErrors } from '../setup/import.ts'
import { CommandError, EXIT, load } from '../terminal/io.ts'
import type { Invocation } from '../terminal/io.ts'
import { printResult } from '../terminal/print.ts'
import { CHECKS } from './checks.ts'
import type { Examined, Finding } from './finding.ts'
import { askDesktopPath, askShellPath } from './programs.ts'

export interface DoctorOptions {
  readonly fix?: boolean
}

/** Exit code 6: something does not work. */
export const doctor = async (invocation: Invocation, { fix }: DoctorOptions): Promise<number> => {
  const { context } = invocation
  const { configuration, discovered } = await load(invocation)
  const [shellPath, desktopPath, own, control] = await Promise.all([
    askShellPath(context),
    askDesktopPath(context),
    ownServers(configuration, context),
    connectAdmin(invocation.socket, invocation.io.interrupted),
  ])
  const isRunning = control !== undefined
  const examined: Examined = { configuration, discovered, own, invocation, shellPath, desktopPath, isRunning }
  const status = await control?.status()
  const signIns = (status?.servers ?? [])
    .filter(({ needsSignIn }) => needsSignIn)
    .map(({ key }): Finding => ({
      level: 'trouble',
      text: `${key}: needs sign-in: there is none, or it has expired`,
      remedy: invocation.command('login', key),
    }))
  const findings = [...(await Promise.all(CHECKS.map((check) => check(examined)))).flat(), ...signIns]
  const fixed = fix === true ? await repair(examined, findings) : []
  const left = findings.filter((finding) => !fixed.includes(finding))
  const result = {
    findings: left.map(({ level, text, remedy, fix: own }) => ({ level, text, remedy, isFixable: own !== undefined })),
    fixed: fixed.map(({ text }) => text),
  }
  await printResult(invocation, result, (paint) => [
    ...fixed.map(({ text }) => `  fixed  ${text}`),
    ...left.flatMap(({ level, text, remedy }) => [
      ['  ', level === 'trouble' ? paint('✗', 'red') : paint('▲', 'yellow'), ` ${text}`],
      `    → ${remedy}`,
    ]),
    ...(findings.length === 0 ? ['  no problems found'] : []),
  ])
  const count = left.filter(({ level }) => level === 'trouble').length
  if (count === 0) return EXIT.ok
  throw new CommandError(EXIT.mismatch, `${count === 1 ? '1 thing does' : `${count} things do`} not work; each remedy is above`)
}

const ownServers = async ({ files: [file] }: Configuration, context: RuntimeEnvironment): Promise<ReadonlySet<string>> => {
  const ours = file !== undefined && /\.ya?ml$/.test(file) ? await readOurFile(file, context).catch(() => undefined) : undefined
  return new Set(Object.keys(ours?.servers ?? {}))
}

/** Repairs modes of files, and commands of servers in our own file. Returns the repaired findings. */
const repair = async (examined: Examined, findings: readonly Finding[]): Promise<readonly Finding[]> => {
  const done: Finding[] = []
  for (const finding of findings)
    if (finding.fix?.kind === 'mode') {
      await chmod(finding.fix.file, 0o600)
      done.push(finding)
    }
  return [...done, ...(await repairCommands(examined, findings))]
}

const repairCommands = async (
  { configuration, invocation }: Examined,
  findings: readonly Finding[],
): Promise<readonly Finding[]> => {
  const [file] = configuration.files
  const wanted = findings.flatMap((finding) => (finding.fix?.kind === 'command' ? [{ finding, ...finding.fix }] : []))
  if (file === undefined || wanted.length === 0) return []
  await refuseChangeErrors(() =>
    updateOurFile(file, invocation.context, (ours) => {
      const text = wanted.reduce(
        (before, { server, path }) => editing(ours.file, () => replaceScalar(before, ['servers', server, 'command'], path)),
        ours.text ?? '',
      )
      return { text }
    }),
  )
  return wanted.map(({ finding }) => finding)
}
