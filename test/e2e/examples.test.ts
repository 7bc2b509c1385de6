/** Every story under `examples/` has a configuration, a page and a check; every check is run as its page says. */
import { execFile } from 'node:child_process'
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { describe, expect, test } from 'vitest'

const ROOT = fileURLToPath(new URL('../..', import.meta.url))
/** `files` is the folder that the file server of the demo serves. */
const stories = readdirSync(join(ROOT, 'examples'), { withFileTypes: true })
  .filter((entry) => entry.isDirectory() && entry.name !== 'files')
  .map(({ name }) => name)

test('the five stories are there', () => {
  expect(stories).toEqual(
    expect.arrayContaining(['modern-for-legacy', 'old-sse-server', 'one-endpoint', 'stdio-on-the-network', 'team']),
  )
})

describe.each(stories)('the example %s', (story) => {
  const folder = join(ROOT, 'examples', story)

  test('has a configuration, and a page of one screen that names its check', () => {
    expect(existsSync(join(folder, 'trunkline.yaml'))).toBe(true)
    const page = readFileSync(join(folder, 'README.md'), 'utf8')
    expect(page).toContain(`node_modules/.bin/node examples/${story}/check.ts`)
    expect(page.split('\n').length).toBeLessThanOrEqual(60)
  })

  test('starts no file that only a newer Node than the oldest one allowed can run', () => {
    expect(readFileSync(join(folder, 'trunkline.yaml'), 'utf8')).not.toMatch(/^\s*args: .*\.ts\b/m)
  })

  test('does what it says', async () => {
    const { stdout } = await promisify(execFile)(process.execPath, [join(folder, 'check.ts')], { cwd: ROOT })
    const lines = stdout.trimEnd().split('\n')
    expect(lines.length).toBeGreaterThan(1)
    expect(lines.filter((line) => !line.startsWith('ok  '))).toEqual([])
  })
})
