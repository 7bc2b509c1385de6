import { rename, rm, symlink, writeFile } from 'node:fs/promises'
import { firstValueFrom, ReplaySubject } from 'rxjs'
import { describe, expect, test } from 'vitest'
import { watchConfiguration } from '../../../src/config/change/watch.ts'
import type { WatchOptions } from '../../../src/config/change/watch.ts'
import { workspace } from './workspace.ts'

/** Watches, and can tell when it does: a touched file beside the others is the sign that events arrive. */
const watching = async (files: readonly string[], globs: readonly string[], sign: string, options: WatchOptions = {}) => {
  const changes$ = new ReplaySubject<readonly string[]>()
  const subscription = watchConfiguration([...files, sign], globs, { debounceMs: 20, ...options }).subscribe(changes$)
  const knock = setInterval(() => void writeFile(sign, String(Math.random())), 60)
  await firstValueFrom(changes$)
  clearInterval(knock)
  return {
    /** The next emission that is about more than the sign. */
    changed: () =>
      new Promise<readonly string[]>((resolve) => {
        changes$.subscribe((paths) => paths.some((path) => path !== sign) && resolve(paths.filter((path) => path !== sign)))
      }),
    [Symbol.dispose]: () => subscription.unsubscribe(),
  }
}

describe('a file of the configuration changes', () => {
  test('a write is told', async () => {
    await using files = await workspace({ 'a.yaml': 'one', 'b.yaml': 'one', sign: '' })
    using watch = await watching([files.path('a.yaml'), files.path('b.yaml')], [], files.path('sign'))
    await writeFile(files.path('b.yaml'), 'two')
    expect(await watch.changed()).toEqual([files.path('b.yaml')])
  })

  test('an editor that writes beside and renames over is told, again and again', async () => {
    await using files = await workspace({ 'a.yaml': 'one', sign: '' })
    const file = files.path('a.yaml')
    for (const text of ['two', 'three']) {
      using watch = await watching([file], [], files.path('sign'))
      await writeFile(`${file}~`, text)
      await rename(`${file}~`, file)
      expect(await watch.changed()).toEqual([file])
    }
  })

  test('a file that is away for a moment is one change, not two', async () => {
    await using files = await workspace({ 'a.yaml': 'one', sign: '' })
    const file = files.path('a.yaml')
    using watch = await watching([file], [], files.path('sign'), { vanishMs: 300 })
    await rm(file)
    await writeFile(file, 'two')
    expect(await watch.changed()).toEqual([file])
  })

  test('a file that stays away is told', async () => {
    await using files = await workspace({ 'a.yaml': 'one', sign: '' })
    using watch = await watching([files.path('a.yaml')], [], files.path('sign'), { vanishMs: 10 })
    await rm(files.path('a.yaml'))
    expect(await watch.changed()).toEqual([files.path('a.yaml')])
  })

  test('a file that was missing before delays no change', async () => {
    await using files = await workspace({ 'a.yaml': 'one', sign: '' })
    const file = files.path('a.yaml')
    using watch = await watching([file, files.path('none.yaml')], [], files.path('sign'), { vanishMs: 3_600_000 })
    await writeFile(file, 'two')
    expect(await watch.changed()).toEqual([file])
  })

  test('a swapped link, as mounted configurations do it, is told', async () => {
    await using files = await workspace({ 'v1/a.yaml': 'one', 'v2/a.yaml': 'two', 'mount/sign': '' })
    await symlink('../v1', files.path('mount/data'))
    await symlink('data/a.yaml', files.path('mount/a.yaml'))
    using watch = await watching([files.path('mount/a.yaml')], [], files.path('mount/sign'))
    await symlink('../v2', files.path('mount/next'))
    await rename(files.path('mount/next'), files.path('mount/data'))
    expect(await watch.changed()).toEqual([files.path('mount/a.yaml')])
  })

  test('a new file that an include pattern matches is told', async () => {
    await using files = await workspace({ 'servers/a.yaml': 'one', sign: '' })
    using watch = await watching([files.path('servers/a.yaml')], [files.path('servers/*.yaml')], files.path('sign'))
    await writeFile(files.path('servers/b.yaml'), 'two')
    expect(await watch.changed()).toEqual([files.path('servers/b.yaml')])
  })

  test('a folder that cannot be watched is looked at from time to time', async () => {
    await using files = await workspace({ sign: '' })
    const late = files.path('late/a.yaml')
    using watch = await watching([late], [], files.path('sign'), { pollMs: 30 })
    await files.write('late/a.yaml', 'one')
    expect(await watch.changed()).toEqual([late])
  })
})
