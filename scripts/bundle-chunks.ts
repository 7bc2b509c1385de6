/**
 * Which modules of the bundle are in one file. A start pays for each file that it opens (resolving, reading and linking it takes Node half a
 * millisecond), and for each builtin that is imported rather than requested. Together these were 45 of 225 ms of CPU.
 */
import { join } from 'node:path'
import type { CodeSplittingOptions, Plugin } from 'rolldown'

/** The check of the Node is a file of its own, so that an import of the library runs it before it loads any other. */
const CHECK = 'supported-node'

/**
 * What a start loads, in this order: a module, and all it imports that is not in a file before it. None of them may do anything when it is
 * loaded: who embeds the gateway loads these files, too.
 */
const FILES = [
  // Loaded before the compile cache is on, which keeps what comes after it.
  { name: 'start', root: 'config/engine' },
  { name: 'commands', root: 'cli' },
  { name: 'gateway', root: 'commands/serve/up' },
] as const

/** What to give to the bundler: a plugin that learns who imports whom, and options that go by it. `folder`: that of `main`. */
export const startInFewChunks = (folder: string): { readonly plugin: Plugin; readonly codeSplitting: CodeSplittingOptions } => {
  const fileOf = new Map<string, string>()
  const plugin: Plugin = {
    name: 'start-in-few-chunks',
    buildEnd(failed) {
      if (failed !== undefined) return
      const add = (module: string, name: string): void => {
        if (fileOf.has(module)) return
        fileOf.set(module, name)
        for (const imported of this.getModuleInfo(module)?.importedIds ?? []) add(imported, name)
      }
      for (const { name, root } of FILES) {
        const module = ['.ts', '.js'].map((end) => join(folder, root + end)).find((path) => this.getModuleInfo(path) !== null)
        if (module === undefined) throw new Error(`bundle-chunks.ts names ${root}, and there is no such module`)
        add(module, name)
      }
    },
  }
  const groups = FILES.map(({ name }, at) => ({
    name,
    priority: FILES.length - at,
    test: (module: string) => fileOf.get(module) === name,
  }))
  const check = { name: 'node', priority: FILES.length + 1, test: (module: string) => module.includes(join(folder, CHECK)) }
  return { plugin, codeSplitting: { groups: [check, ...groups] } }
}

const IMPORT = /^import (?:(\w+)|\* as (\w+)|(?:(\w+), )?\{([^}]*)\}) from "(node:[\w/]+)";$/gm

/**
 * Asks Node for its own modules by name. An `import` makes Node read every name of such a module, and some of them load others: of
 * `node:crypto` all of Web Crypto. The entry stays as it is, since an older Node, which knows no other way, must read its sentence.
 */
export const builtinsByName: Plugin = {
  name: 'builtins-by-name',
  renderChunk(code, { isEntry, fileName }) {
    if (isEntry) return null
    const replaced = code.replaceAll(
      IMPORT,
      (_, only?: string, all?: string, first?: string, names?: string, module?: string) => {
        const taken = `globalThis.process.getBuiltinModule("${module}")`
        const whole = only ?? all ?? first
        const statements = whole === undefined ? [] : [`const ${whole} = ${taken};`]
        if (names !== undefined) statements.push(`const {${names.replaceAll(' as ', ': ')}} = ${whole ?? taken};`)
        return statements.join(' ')
      },
    )
    const left = /^import .*"node:.*$/m.exec(replaced)
    if (left !== null) throw new Error(`${fileName} imports a builtin in a way that bundle-chunks.ts does not know: ${left[0]}`)
    return replaced
  },
}
