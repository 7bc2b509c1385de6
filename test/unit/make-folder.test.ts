/** Folders are made, or an error names the place at once: Node's own `mkdir` with `recursive` never returns where these tests look. */
import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { describe, expect, test } from 'vitest'
import { makeFolder } from '../../src/make-folder.ts'

const SRC = fileURLToPath(new URL('../../src', import.meta.url))

const within = (use: (folder: string) => void): void => {
  const folder = mkdtempSync(join(tmpdir(), 'trunkline-make-'))
  try {
    use(folder)
  } finally {
    rmSync(folder, { recursive: true })
  }
}

test('makes what is missing above a folder, too, for its owner alone, and takes what is there', () => {
  within((folder) => {
    const deep = join(folder, 'a', 'b', 'c')
    makeFolder(deep)
    makeFolder(deep)
    expect([deep, join(folder, 'a')].map((path) => statSync(path).mode & 0o777)).toEqual([0o700, 0o700])
  })
})

test('is of the mode that is asked for', () => {
  within((folder) => {
    makeFolder(join(folder, 'a', 'b'), 0o755)
    expect(['a', 'a/b'].map((path) => statSync(join(folder, path)).mode & 0o777)).toEqual([0o755, 0o755])
  })
})

test('a link to a folder is that folder', () => {
  within((folder) => {
    makeFolder(join(folder, 'real'))
    symlinkSync(join(folder, 'real'), join(folder, 'link'))
    makeFolder(join(folder, 'link', 'below'))
    expect(statSync(join(folder, 'real', 'below')).isDirectory()).toBe(true)
  })
})

describe('throws and names the place', () => {
  test('below a link to nothing, and below a file', () => {
    within((folder) => {
      const [link, file] = [join(folder, 'link'), join(folder, 'file')]
      symlinkSync(join(folder, 'nowhere'), link)
      writeFileSync(file, '')
      for (const path of [link, file])
        for (const target of [path, join(path, 'x', 'y')])
          expect(() => makeFolder(target)).toThrow(
            `the folder ${target} cannot be made: ${path} is not a folder, or is a dangling link (EEXIST)`,
          )
    })
  })

  test('whose name the system refuses, with its code and cause', () => {
    within((folder) => {
      const path = join(folder, 'x'.repeat(300))
      const expected = { code: 'ENAMETOOLONG', cause: expect.objectContaining({ code: 'ENAMETOOLONG' }) as object }
      const message = `the folder ${path}/y cannot be made: ${path} is refused by the system (ENAMETOOLONG)`
      expect(() => makeFolder(join(path, 'y'))).toThrow(expect.objectContaining({ ...expected, message }))
    })
  })

  test.runIf(process.platform === 'linux')('below /proc, which takes no folders', () => {
    expect(() => makeFolder('/proc/x/trunkline')).toThrow(
      'the folder /proc/x/trunkline cannot be made: /proc accepts no new folders (ENOENT)',
    )
  })
})

test('no other folder is made with mkdir and recursive, which may never return', () => {
  const files = readdirSync(SRC, { recursive: true, encoding: 'utf8' }).filter((name) => name.endsWith('.ts'))
  const found = files.filter((name) => /mkdir(Sync)?\([^]{0,100}?recursive/.test(readFileSync(join(SRC, name), 'utf8')))
  expect(found).toEqual([])
})
