/** A copy of the checkout that has many mutations, each behind a switch, and runs tests with one of them on for each test file. */
import { execFileSync, spawn } from 'node:child_process'
import type { ChildProcess } from 'node:child_process'
import {
  copyFileSync,
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  readdirSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join, relative } from 'node:path'
import { withSwitches } from './mutations.ts'
import type { Mutation } from './mutations.ts'

const SWITCH = 'scripts/mutation-switch.ts'
const CONFIG = 'scripts/mutation-vitest.config.ts'

/** A test file, by path from the root, and the mutation that is on in it. */
export interface Trial {
  readonly test: string
  readonly key?: number
}

/** How a test file ended: one that hung is red, one that did not run at all is neither. */
export type Ended = 'red' | 'green' | undefined

/** Test files by key of a mutation. */
export type Reached = ReadonlyMap<number, ReadonlySet<string>>

export class MutatedCopy implements Disposable {
  readonly #folder = mkdtempSync(join(tmpdir(), 'mutate-'))
  readonly #copy = join(this.#folder, 'copy')
  readonly #silentMs: number
  #tests: ChildProcess | undefined

  /** The key of a mutation is its place in `mutations`. A run that `silentMs` long ends no test file is cut off. */
  constructor(root: string, mutations: readonly Mutation[], silentMs: number) {
    this.#silentMs = silentMs
    for (const name of ['running', 'reached', 'copy']) mkdirSync(join(this.#folder, name))
    for (const file of execFileSync('git', ['ls-files'], { cwd: root, encoding: 'utf8' }).trim().split('\n'))
      cpSync(join(root, file), join(this.#copy, file), { recursive: true })
    symlinkSync(join(root, 'node_modules'), join(this.#copy, 'node_modules'))
    this.#edit(SWITCH, (source) => source.replace('/FOLDER/', this.#folder))
    for (const [file, found] of Map.groupBy(mutations.entries(), ([, mutation]) => mutation.file)) {
      const isMutant = `import { isMutant } from '${relative(dirname(file), SWITCH)}'`
      this.#edit(file, (source) => `${withSwitches(source, new Map(found), 'isMutant')}\n${isMutant}\n`)
    }
  }

  #edit(file: string, change: (source: string) => string): void {
    writeFileSync(join(this.#copy, file), change(readFileSync(join(this.#copy, file), 'utf8')))
  }

  /**
   * Runs tests, each with one mutation on. A test file that is to run with several has a copy for each: workers that have loaded the program
   * run one after the other in no time. Without keys, those of `everywhere` or none is on.
   */
  async run(trials: readonly Trial[], everywhere?: number | 'none'): Promise<readonly Ended[]> {
    const files = trials.map(({ test, key }) => (key === undefined ? test : test.replace(/\.test\.ts$/, `.mutant${key}.test.ts`)))
    for (const [at, { test }] of trials.entries())
      if (files[at] !== test) copyFileSync(join(this.#copy, test), join(this.#copy, files[at] ?? ''))
    const keys = trials.flatMap(({ key }, at) => (key === undefined ? [] : [[files[at] ?? '', key] as const]))
    const ended = await this.#run(files, {
      ...Object.fromEntries(keys),
      ...(everywhere === 'none' ? { none: 1 } : { '*': everywhere }),
    })
    for (const [at, { test }] of trials.entries()) if (files[at] !== test) rmSync(join(this.#copy, files[at] ?? ''))
    return files.map((file) => ended.get(file))
  }

  async #run(
    tests: readonly string[],
    on: Readonly<Record<string, number | undefined>>,
  ): Promise<ReadonlyMap<string, 'red' | 'green'>> {
    writeFileSync(join(this.#folder, 'on'), JSON.stringify(on))
    writeFileSync(join(this.#folder, 'ended'), '')
    for (const name of readdirSync(join(this.#folder, 'running'))) rmSync(join(this.#folder, 'running', name))
    const child = spawn(process.execPath, ['node_modules/vitest/vitest.mjs', 'run', '--config', CONFIG, ...tests], {
      cwd: this.#copy,
      stdio: 'ignore',
      detached: true,
    })
    this.#tests = child
    const exited = new Promise<void>((resolve) => {
      child.once('exit', () => resolve())
    })
    let [count, isHanging, at] = [0, false, performance.now()]
    const watch = setInterval(() => {
      const now = this.#ended().length
      if (now !== count) [count, at] = [now, performance.now()]
      isHanging = performance.now() - at > this.#silentMs
      if (isHanging) this.#kill()
    }, 1000)
    await exited
    clearInterval(watch)
    this.#tests = undefined
    const ended = new Map(this.#ended().map(([state, test = '']) => [test, state as 'red' | 'green']))
    if (isHanging)
      for (const name of readdirSync(join(this.#folder, 'running'))) {
        const test = readFileSync(join(this.#folder, 'running', name), 'utf8')
        if (!ended.has(test)) ended.set(test, 'red')
      }
    return ended
  }

  /** The tests that run, and every process that they have started. */
  #kill(): void {
    if (this.#tests?.pid !== undefined) process.kill(-this.#tests.pid, 'SIGKILL')
  }

  #ended(): readonly (readonly string[])[] {
    return readFileSync(join(this.#folder, 'ended'), 'utf8')
      .split('\n')
      .filter((line) => line !== '')
      .map((line) => line.split(' '))
  }

  /** Runs `tests` with no mutation on, red ones twice, to learn which are green and, by key, which come to a mutation. */
  async probe(tests: readonly string[]): Promise<{ readonly green: ReadonlySet<string>; readonly reached: Reached }> {
    const green = new Set<string>()
    for (let times = 0; times < 2; times++) {
      const some = tests.filter((test) => !green.has(test))
      const ended =
        some.length === 0
          ? []
          : await this.run(
              some.map((test) => ({ test })),
              'none',
            )
      for (const [at, test] of some.entries()) if (ended[at] === 'green') green.add(test)
    }
    const pairs = readdirSync(join(this.#folder, 'reached'))
      .flatMap((name) =>
        readFileSync(join(this.#folder, 'reached', name), 'utf8')
          .trim()
          .split('\n'),
      )
      .map((line) => line.split(' '))
    const reached = Map.groupBy(pairs, ([key]) => Number(key))
    return { green, reached: new Map([...reached].map(([key, found]) => [key, new Set(found.map(([, test = '']) => test))])) }
  }

  [Symbol.dispose](): void {
    this.#kill()
    if (existsSync(this.#folder)) rmSync(this.#folder, { recursive: true, force: true })
  }
}
