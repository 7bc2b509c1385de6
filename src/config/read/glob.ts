/** File patterns of `include`: `*` and `?` within a name, `**` for any number of folders. Hidden names match only a pattern with the dot. */
import { readdir } from 'node:fs/promises'
import { join, parse, sep } from 'node:path'

const MAX_DEPTH = 16

export const isGlob = (path: string): boolean => /[*?]/.test(path)

/** The deepest folder that contains everything that an absolute pattern can match. */
export const globRoot = (pattern: string): string => walkSteps(pattern).folder

/**
 * Absolute paths of the files that match an absolute pattern, sorted. Unreadable folders count as empty. Rejects with the system's error
 * where reading fails for another reason, so that a lack of descriptors does not look like missing files.
 */
export const expandGlob = async (pattern: string): Promise<readonly string[]> => {
  const { folder, steps } = walkSteps(pattern)
  return [...new Set(await walk(folder, steps, 0))].sort()
}

const walkSteps = (pattern: string): { folder: string; steps: readonly string[] } => {
  const { root } = parse(pattern)
  const steps = pattern.slice(root.length).split(sep)
  const fixed = steps.findIndex(isGlob)
  return { folder: join(root, ...steps.slice(0, fixed)), steps: steps.slice(fixed) }
}

const walk = async (folder: string, [step, ...rest]: readonly string[], depth: number): Promise<readonly string[]> => {
  if (step === undefined || depth > MAX_DEPTH) return []
  const entries = await readdir(folder, { withFileTypes: true }).catch(emptyIfAbsent)
  const matches = segment(step)
  const deeper = await Promise.all(
    entries.map(async (entry) => {
      const path = join(folder, entry.name)
      const isFolder = entry.isDirectory()
      if (step === '**') return isFolder && !entry.name.startsWith('.') ? walk(path, [step, ...rest], depth + 1) : []
      if (!matches.test(entry.name)) return []
      if (rest.length === 0) return isFolder ? [] : [path]
      return isFolder || entry.isSymbolicLink() ? walk(path, rest, depth + 1) : []
    }),
  )
  return [...deeper.flat(), ...(step === '**' ? await walk(folder, rest, depth + 1) : [])]
}

const ABSENT: ReadonlySet<string | undefined> = new Set(['ENOENT', 'ENOTDIR', 'EACCES', 'EPERM', 'ELOOP', 'ENAMETOOLONG'])

const emptyIfAbsent = (error: NodeJS.ErrnoException): [] => {
  if (ABSENT.has(error.code)) return []
  throw error
}

const segment = (step: string): RegExp => {
  const body = step.replaceAll(/[.+^${}()|[\]\\]/g, '\\$&').replaceAll(/[*?]/g, (wild) => (wild === '*' ? '.*' : '.'))
  return new RegExp(`^${/^[*?]/.test(step) ? '(?!\\.)' : ''}${body}$`)
}
