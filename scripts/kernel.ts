/**
 * `npm run kernel`: compiles the scan kernel, `src/wire/kernel/assembly/scan.ts`, and writes it to `binary.ts` beside it as base64, so that
 * sources, package and bundle load it in the same way. A test compares the committed file with a new build.
 */
import { execFile } from 'node:child_process'
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'

const FOLDER = join(import.meta.dirname, '../src/wire/kernel')
const OPTIONS = '-O3 --converge --noAssert --runtime stub --enable simd --initialMemory 2 --maximumMemory 2 --use abort='.split(
  ' ',
)

/** The text of `binary.ts`, from a fresh build. */
export const buildKernel = async (): Promise<string> => {
  const compiler = createRequire(import.meta.url).resolve('assemblyscript/bin/asc.js')
  const folder = await mkdtemp(join(tmpdir(), 'trunkline-kernel-'))
  try {
    const file = join(folder, 'kernel.wasm')
    await promisify(execFile)(process.execPath, [compiler, 'scan.ts', ...OPTIONS, '-o', file], { cwd: join(FOLDER, 'assembly') })
    const base64 = (await readFile(file)).toString('base64')
    return `/** The compiled scan kernel. Written by \`npm run kernel\` from \`assembly/scan.ts\`. */\nexport const KERNEL_BASE64 =\n  '${base64}'\n`
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
}

if (import.meta.main) await writeFile(join(FOLDER, 'binary.ts'), await buildKernel())
