/**
 * 500 seeds of the simulator, 20 with several replicas, and everything it ever found (docs/simulator.md), in processes of their own: it takes
 * Node's clock and sockets away. A machine with much other work runs as many as fit into two minutes.
 */
import { execFile } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { expect, test } from 'vitest'

const SCRIPT = fileURLToPath(new URL('../../scripts/simulate.ts', import.meta.url))

const SLOW_DISK = fileURLToPath(new URL('../support/children/slow-disk.mjs', import.meta.url))

/** What a simulation makes and lets go is collected seldom: a twelfth less CPU. */
const NODE = ['--no-warnings', '--max-semi-space-size=64', '--min-semi-space-size=16']

const run = async (...words: string[]): Promise<string> => {
  const { stdout } = await promisify(execFile)(process.execPath, [...NODE, ...words]).catch(
    (error: unknown) => error as { stdout: string },
  )
  return stdout
}
const simulate = (...options: string[]): Promise<string> => run(SCRIPT, ...options)

test.concurrent.each([1, 251])(
  'no answer is lost, doubled or crossed, and nothing is left at rest: 250 seeds from %i',
  async (from) => {
    const options = ['--no-plans', '--from', String(from), '--seeds', '250', '--minutes', '2']
    expect(await simulate(...options)).toMatch(/ 0 with findings\n/)
  },
  300_000,
)

test.concurrent('a session is served by one replica at a time, however they are parted, killed and paused: 20 seeds', async () => {
  expect(await simulate('--no-plans', '--replicas', '5', '--seeds', '20', '--minutes', '1')).toMatch(/ 0 with findings\n/)
}, 300_000)

// The first one runs the stored plans, too.
test.concurrent.each([[], ['--no-plans', '--replicas', '4']])(
  'a seed does the same each time, however slow the real disk, and without real random numbers, is %j',
  async (...options) => {
    const figures = (text: string): readonly unknown[] => [
      /^\d+ simulations, .*, \d+\.\d+ simulated minutes/m.exec(text)?.[0],
      text.trim().split('\n').at(-1),
    ]
    const output = await simulate('--seeds', '4', ...options)
    expect(output).toMatch(/ 0 with findings\n/)
    const first = figures(output)
    expect(first).not.toContain(undefined)
    expect(figures(await run('--import', SLOW_DISK, SCRIPT, '--seeds', '4', ...options))).toEqual(first)
  },
  300_000,
)
