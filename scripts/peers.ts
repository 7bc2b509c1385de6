/**
 * `npm run peers [-- --few] [LANGUAGE…] [programs]`: runs every pair of the named languages, and the real programs (all, unless one is
 * named), or with `--few` each transport and side of a language once, and prints the losses. Without names, or with `--page`, it also
 * writes docs/peers.md.
 * `npm run peers idp [keycloak] [dex]` runs real identity providers with a real browser instead.
 * Exits with 1 if something was lost, and with 2 if something could not be run.
 */
import { writeFile } from 'node:fs/promises'
import { availableParallelism } from 'node:os'
import PQueue from 'p-queue'
import { everyGroup, fewGroups, groupName, optionGroups } from '../test/peers/cells.ts'
import type { Group } from '../test/peers/cells.ts'
import { judge, lossesOf } from '../test/peers/explained.ts'
import type { Judged } from '../test/peers/explained.ts'
import { LANGUAGES } from '../test/peers/languages.ts'
import type { PeerLanguage, Sdk } from '../test/peers/languages.ts'
import { runProviders } from '../test/peers/idp/run.ts'
import { bridgeVersion, programGroups, PROGRAMS, setUpPrograms } from '../test/peers/programs.ts'
import { runGroup } from '../test/peers/run.ts'
import { renderPeersPage } from './peers-page.ts'

/** What can be named: a language, or the real programs. */
interface Part {
  readonly sdks: readonly Sdk[]
  readonly setUp: () => Promise<void>
  readonly groups: () => readonly Group[]
}

const isFew = process.argv.includes('--few')
const isWritten = process.argv.includes('--page')
const PARTS: Readonly<Record<string, Part>> = {
  ...Object.fromEntries(
    Object.entries(LANGUAGES).map(([name, { sdks, setUp }]) => [
      name,
      {
        sdks,
        setUp,
        groups: () => [...(isFew ? fewGroups(sdks) : sdks.flatMap(everyGroup)), ...optionGroups(name as PeerLanguage, sdks)],
      },
    ]),
  ),
  programs: { sdks: PROGRAMS, setUp: setUpPrograms, groups: programGroups },
}
if (process.argv[2] === 'idp') {
  const missed = await runProviders(process.argv.slice(3), console.log)
  console.log(missed.length === 0 ? 'all was seen' : `${missed.length} were not seen`)
  process.exit(missed.length === 0 ? 0 : 1)
}
const names = process.argv.slice(2).filter((word) => !word.startsWith('--'))
const unknown = names.find((name) => PARTS[name] === undefined)
if (unknown !== undefined) throw new Error(`no peers in ${unknown}; there are: ${Object.keys(PARTS).join(', ')}`)

// What ends with this process ends with it then, too.
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => process.exit(130))

const judged: Judged[] = []
const notRun: string[] = []
const ran: Sdk[] = []
const firstLines = (error: unknown): string => String(error).split('\n').slice(0, 3).join(' ')
const isPageWanted = names.length === 0 || isWritten
/** After each part: a run that is ended has written what it saw. */
const writePage = (): Promise<void> =>
  writeFile(new URL('../docs/peers.md', import.meta.url), renderPeersPage(ran, judged, notRun, isFew, bridgeVersion))
for (const name of names.length > 0 ? names : Object.keys(PARTS)) {
  const { sdks, setUp, groups } = PARTS[name]!
  console.log(name)
  try {
    await setUp()
  } catch (error) {
    notRun.push(`${name}: ${firstLines(error)}`)
    if (isPageWanted) await writePage()
    continue
  }
  const play = async (group: Group): Promise<void> => {
    try {
      const found = (await runGroup(group, (line) => console.log(`  ${line}`))).map(judge)
      judged.push(...found)
      for (const line of found.flatMap(lossesOf)) console.log(`    lost: ${line}`)
    } catch (error) {
      notRun.push(`${groupName(group)}: ${firstLines(error)}`)
    }
  }
  // Most of a group is waiting.
  await new PQueue({ concurrency: 2 * availableParallelism() }).addAll(groups().map((group) => () => play(group)))
  ran.push(...sdks)
  if (isPageWanted) await writePage()
}
const lost = judged.filter((one) => one.lost.length > 0).length
const explained = judged.filter((one) => one.lost.length === 0 && one.explained.length > 0).length
console.log(`${judged.length} comparisons: ${judged.length - lost - explained} equal, ${explained} explained, ${lost} lost`)
for (const line of notRun) console.log(`could not run ${line}`)
process.exitCode = notRun.length > 0 ? 2 : lost > 0 ? 1 : 0
