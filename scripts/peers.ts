/**
 * `npm run peers [-- --few] [LANGUAGE…]`: runs every pair of the named languages (all, unless one is named), or with `--few` the pairs that
 * CI runs, and prints what was lost. Without names it also writes docs/peers.md. Exits with 1 when something was lost, and with 2 when a language could not be run.
 */
import { writeFile } from 'node:fs/promises'
import { everyGroup, fewGroups } from '../test/peers/cells.ts'
import { judge, lossesOf } from '../test/peers/explained.ts'
import type { Judged } from '../test/peers/explained.ts'
import { LANGUAGES } from '../test/peers/languages.ts'
import type { PeerLanguage, Sdk } from '../test/peers/languages.ts'
import { runGroup } from '../test/peers/run.ts'
import { renderPeersPage } from './peers-page.ts'

const isLanguage = (name: string): name is PeerLanguage => Object.hasOwn(LANGUAGES, name)
const isFew = process.argv.includes('--few')
const names = process.argv.slice(2).filter((word) => word !== '--few')
const unknown = names.find((name) => !isLanguage(name))
if (unknown !== undefined) throw new Error(`no peers in ${unknown}; there are: ${Object.keys(LANGUAGES).join(', ')}`)
const wanted = (names.length > 0 ? names : Object.keys(LANGUAGES)).filter(isLanguage)

const judged: Judged[] = []
const notRun: string[] = []
const ran: Sdk[] = []
for (const language of wanted) {
  const { sdks, setUp } = LANGUAGES[language]
  try {
    await setUp()
  } catch (error) {
    notRun.push(`${language}: ${String(error).split('\n').slice(0, 3).join(' ')}`)
    continue
  }
  for (const sdk of sdks) {
    console.log(`${sdk.key}: ${sdk.name} ${sdk.version}`)
    for (const group of isFew ? fewGroups([sdk]) : everyGroup(sdk)) {
      const found = (await runGroup(group, (line) => console.log(`  ${line}`))).map(judge)
      judged.push(...found)
      for (const line of found.flatMap(lossesOf)) console.log(`    lost: ${line}`)
    }
    ran.push(sdk)
  }
}
if (names.length === 0) await writeFile(new URL('../docs/peers.md', import.meta.url), renderPeersPage(ran, judged, notRun))
const lost = judged.filter((one) => one.lost.length > 0).length
const explained = judged.filter((one) => one.lost.length === 0 && one.explained.length > 0).length
console.log(`${judged.length} comparisons: ${judged.length - lost - explained} equal, ${explained} explained, ${lost} lost`)
for (const line of notRun) console.log(`could not run ${line}`)
process.exitCode = notRun.length > 0 ? 2 : lost > 0 ? 1 : 0
