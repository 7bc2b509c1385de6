/** Reads one file into a tree. Refuses files that every user may write (T-12). */
import { readFile, stat } from 'node:fs/promises'
import { extname } from 'node:path'
import { asError } from '../../values/as-error.ts'
import { decodeUtf8 } from '../../values/utf8.ts'
import { parseText } from '../syntax/document.ts'
import type { Problem } from '../syntax/problems.ts'
import { parseToml } from '../syntax/toml.ts'
import type { MapTree } from '../syntax/tree.ts'

const MAX_BYTES = 4 * 1024 * 1024

export interface Source {
  readonly tree: MapTree
  /** Other users may read the file. */
  readonly readable: boolean
  readonly isEmpty: boolean
}

/** `name`: of the file, for places. `text` replaces its content. `undefined`: it cannot be used, and the reason was added to `problems`. */
export const readSource = async (file: string, name: string, problems: Problem[], text?: string): Promise<Source | undefined> => {
  const refuse = (message: string, remedy: string) => {
    problems.push({ place: `${name}:1:1`, path: '', message, remedy })
    return undefined
  }
  try {
    const found = await stat(file)
    if (found.isDirectory()) return refuse('is a folder', 'name a YAML, JSON or TOML file in it')
    if (!found.isFile()) return refuse('is not a file', 'name a YAML, JSON or TOML file')
    if ((text?.length ?? found.size) > MAX_BYTES) return refuse('is larger than 4 MiB', 'split it with include')
    if (isWritableByAll(found))
      return refuse('can be written by every user, and a configuration runs commands', `chmod o-w ${name}`)
    const parse = extname(file) === '.toml' ? parseToml : parseText
    const content = text ?? decodeUtf8(await readFile(file))
    if (content === undefined) return refuse('is not UTF-8', 'save it as UTF-8')
    const { tree, problems: syntax, isEmpty } = parse(content, name)
    problems.push(...syntax)
    if (tree.kind !== 'map')
      return syntax.length > 0 ? undefined : refuse('expected a mapping at the top', 'begin with "servers:"')
    return { tree, readable: isPosix() && (found.mode & 0o044) !== 0, isEmpty }
  } catch (error) {
    const { code, message } = asError(error)
    return refuse(`cannot be read (${code ?? message})`, code === 'ENOENT' ? 'check the path' : 'check its permissions')
  }
}

/** Whether every user of this machine could put commands into the file. */
export const isWritableByAll = ({ mode }: { readonly mode: number }): boolean => isPosix() && (mode & 0o002) !== 0

const isPosix = () => process.platform !== 'win32'
