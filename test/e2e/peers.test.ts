/**
 * Servers and hosts on the SDKs of other languages, directly and through Trunkline (test/peers/README.md). Each transport and each side
 * once; `npm run peers` runs every pair, and writes docs/peers.md. Several groups run side by side on each core: most of a scenario is
 * waiting for events and for what must not come.
 */
import { availableParallelism } from 'node:os'
import PQueue from 'p-queue'
import { expect, test } from 'vitest'
import { fewGroups, groupName, optionGroups } from '../peers/cells.ts'
import { judge, lossesOf } from '../peers/explained.ts'
import { LANGUAGES } from '../peers/languages.ts'
import { runGroup } from '../peers/run.ts'
import { describeUnless, describeWith, missingPrograms } from '../support/programs.ts'

const languages = (['python', 'go'] as const).map((language) => {
  const { sdks, needs, setUp } = LANGUAGES[language]
  const isComplete = missingPrograms(needs).length === 0
  const failed = isComplete
    ? setUp().then(
        () => undefined,
        (error: unknown) => `set-up failed: ${String(error).slice(0, 500)}`,
      )
    : undefined
  return { language, sdks, needs, failed }
})

const groups = new PQueue({ concurrency: 3 * availableParallelism() })
/** All groups together, on a machine that does much else. */
const ALL_MS = 600_000

for (const { language, sdks, needs, failed } of languages) {
  const name = `peers in ${language}`
  const suite = (): void => {
    for (const group of [...fewGroups(sdks), ...optionGroups(language, sdks)])
      test.concurrent(
        `B280 nothing is lost: ${groupName(group)}`,
        async () => {
          const observed = await groups.add(() => runGroup(group))
          expect(observed.map(judge).flatMap(lossesOf)).toEqual([])
        },
        ALL_MS,
      )
  }
  if (failed === undefined) describeWith(needs, name, suite)
  else describeUnless(await failed, name, suite)
}
