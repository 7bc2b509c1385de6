/**
 * `npm test`: the checks, then all tests; exits with 1 if one of them fails. `npm test -- FILE`, or with other arguments of vitest: the
 * tests alone, which answer in seconds. The checks read the whole checkout; they are `npm run check`.
 */
import { spawnSync } from 'node:child_process'
import { fileURLToPath } from 'node:url'

const vitest = fileURLToPath(new URL('../node_modules/vitest/vitest.mjs', import.meta.url))
const chosen = process.argv.slice(2)

const checked = chosen.length > 0 ? 0 : spawnSync('npm run check', { stdio: 'inherit', shell: true }).status
process.exitCode = checked === 0 ? (spawnSync(process.execPath, [vitest, 'run', ...chosen], { stdio: 'inherit' }).status ?? 1) : 1
