/** What the program tells the engine of its heap (decision 0186), seen by a module that Node loads before it. */
import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import { expect, test } from 'vitest'
import { PROGRAM } from '../../support/program.ts'

const WATCH = `
import { syncBuiltinESMExports } from 'node:module'
import v8 from 'node:v8'
const { setFlagsFromString } = v8
v8.setFlagsFromString = (option) => {
  process.stdout.write(option + '\\n')
  setFlagsFromString(option)
}
syncBuiltinESMExports()
`

/** The options that are set by a process with these `options` of Node, which runs a short command. `before`: code that runs first. */
const told = async (options: readonly string[] = [], before = ''): Promise<readonly string[]> => {
  const watch = `data:text/javascript,${encodeURIComponent(WATCH + before)}`
  const args = [...options, '--import', watch, PROGRAM, '--version']
  const { stdout, stderr } = await promisify(execFile)(process.execPath, args)
  expect(stderr).toBe('')
  const lines = stdout.trimEnd().split('\n')
  expect(lines.at(-1)).toMatch(/^\d+\.\d+\.\d+$/)
  return lines.slice(0, -1)
}

test('the heap may grow, and is marked late', async () => {
  expect(await told()).toEqual(['--incremental-marking-soft-trigger=80', '--heap-growing-percent=300'])
})

test.each(['--heap-growing-percent=70', '--heap_growing_percent=70'])(
  '%s on the command line of Node has precedence',
  async (option) => {
    expect(await told([option])).toEqual(['--incremental-marking-soft-trigger=80'])
  },
)

test('where memory is scarce the engine limits growth by its own rule', async () => {
  expect(await told(['--max-old-space-size=256'])).toEqual(['--incremental-marking-soft-trigger=80'])
})

test('an engine that may not know the options is not asked for them', async () => {
  expect(await told([], `Object.defineProperty(process.versions, 'node', { value: '27.0.0' })`)).toEqual([])
})
