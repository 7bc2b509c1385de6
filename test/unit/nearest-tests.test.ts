import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { execFileSync } from 'node:child_process'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { nearestTests } from '../../scripts/nearest-tests.ts'

const FILES = {
  'src/store/file.ts': '',
  'src/store/store.ts': "import { write } from './file.ts'\nimport type { Log } from '../log.ts'\n",
  'src/log.ts': '',
  'src/program.ts': "export * from './store/store.ts'\nconst log = await import('./log.ts')\n",
  'test/unit/store/file.test.ts': "import { write } from '../../../src/store/file.ts'\n",
  'test/unit/other.test.ts': "import {\n  write,\n} from '../../src/store/file.ts'\n",
  'test/support/start.ts': "import { run } from '../../src/program.ts'\n",
  'test/integration/start.test.ts': "import '../support/start.ts'\n",
  'test/e2e/process.test.ts': "const program = new URL('../../scripts/start.ts', import.meta.url)\n",
  'scripts/start.ts': "await import(program === undefined ? '../src/program.ts' : program)\n",
} as const

test('tests that reach a file, fewest imports away first, then those whose paths have most words in common', () => {
  const root = mkdtempSync(join(tmpdir(), 'nearest-'))
  onTestFinished(() => rmSync(root, { recursive: true, force: true }))
  for (const [file, text] of Object.entries(FILES)) {
    mkdirSync(dirname(join(root, file)), { recursive: true })
    writeFileSync(join(root, file), text)
  }
  execFileSync('git', ['init', '-q'], { cwd: root })
  execFileSync('git', ['add', '.'], { cwd: root })
  const testsOf = nearestTests(root)
  expect(testsOf('src/store/file.ts')).toEqual([
    'test/unit/store/file.test.ts',
    'test/unit/other.test.ts',
    'test/e2e/process.test.ts',
    'test/integration/start.test.ts',
  ])
  // Through what is imported while it runs, or started as a process, but not for its types alone.
  expect(testsOf('src/log.ts')).toEqual(['test/e2e/process.test.ts', 'test/integration/start.test.ts'])
})
