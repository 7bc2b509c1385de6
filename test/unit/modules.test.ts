/** Rules that no linter checks: which module may import which, and what belongs in one place only (ARCHITECTURE, CONVENTIONS). */
import { readdirSync, readFileSync } from 'node:fs'
import { dirname, join, relative } from 'node:path'
import { fileURLToPath } from 'node:url'
import { describe, expect, test } from 'vitest'

/** Lowest first: a module imports only from modules before it, and from itself. Folders of `src/`, then its files. */
const MODULES = [
  'values',
  'operator-command.ts',
  'make-folder.ts',
  'file-lock.ts',
  'time',
  'wire',
  'transport',
  'rpc',
  'observe',
  'store',
  'auth',
  'replicas',
  'era',
  'catalog',
  'downstream',
  'policy',
  'gateway',
  'host',
  'tracing',
  'config',
  'host-files',
  'install',
  'version.ts',
  'user-agent.ts',
  'redactor.ts',
  'log.ts',
  'audit-file.ts',
  'seal-key.ts',
  'app',
  'app.ts',
  'admin',
  'dashboard-folder.ts',
  'dashboard',
  'supported-node.ts',
  'embedded.ts',
  'index.ts',
  'commands',
  'cli',
  'cli.ts',
  'program.ts',
  'main.ts',
]

/** The folders of a module, lowest first: a folder imports from its module only what comes before it, files beside the folders included. */
const FOLDERS: Readonly<Record<string, readonly string[]>> = {
  wire: ['kernel', 'protocol', 'json', 'message', 'framing', 'headers', 'result'],
  transport: [
    'http1',
    'http1/client',
    'channel',
    'http1/server/connection',
    'http1/server/request',
    'http1/server/fast',
    'http1/server/node',
    'http1/server',
    'pipe',
    'process',
  ],
  observe: ['capture', 'metrics', 'recorded'],
  auth: ['fetch', 'authorization-server', 'outbound', 'inbound/verify', 'inbound'],
  era: ['server', 'host'],
  catalog: ['names', 'curate', 'view', 'lint', 'lock', 'search'],
  downstream: ['pacing', 'calls', 'health', 'links', 'lists'],
  gateway: ['limits', 'lists', 'rounds', 'names', 'tasks', 'rewrite'],
  host: ['limits', 'response', 'session', 'http/guard', 'http/pages', 'http/mcp', 'http', 'stdio'],
  config: ['schema', 'syntax', 'secrets', 'read', 'build', 'build/servers', 'build/hosts', 'build/policies', 'change'],
  'host-files': ['edit'],
  admin: ['calls', 'state', 'catalog', 'explain', 'change', 'socket', 'http'],
  dashboard: ['model', 'page', 'parts', 'screens'],
  commands: ['terminal', 'setup', 'serve', 'inspect', 'doctor', 'running'],
}

const SRC = fileURLToPath(new URL('../../src', import.meta.url))

interface Source {
  /** Relative to `src/`. */
  readonly file: string
  readonly text: string
  /** Without comments. */
  readonly code: string
}

const withoutComments = (text: string): string => text.replace(/\/\*[^]*?\*\//g, '').replace(/(^|[\s;{(,])\/\/[^\n]*/g, '$1')

const sources: Source[] = readdirSync(SRC, { recursive: true, encoding: 'utf8' })
  .filter((file) => /\.tsx?$/.test(file))
  .map((file) => file.replaceAll('\\', '/'))
  .sort()
  .map((file) => {
    const text = readFileSync(join(SRC, file), 'utf8')
    return { file, text, code: withoutComments(text) }
  })

const moduleOf = (file: string): string => file.split('/', 1)[0]!

/** The folder inside its module, `undefined` for a file beside the folders. */
const folderOf = (file: string): string | undefined => file.split('/').slice(1, -1).join('/') || undefined

/** What `import` and `export … from` name, static and dynamic. */
const importsOf = ({ code }: Source): string[] =>
  [/^(?:import|export)\s(?:[\w*{][^'=;()]*?\sfrom\s)?'([^']+)'/gm, /\bimport\('([^']+)'\)/g].flatMap((form) =>
    [...code.matchAll(form)].map(([, specifier]) => specifier!),
  )

const relativeImports = sources.flatMap((source) =>
  importsOf(source)
    .filter((specifier) => specifier.startsWith('.'))
    .map((specifier) => ({
      file: source.file,
      specifier,
      target: relative(SRC, join(SRC, dirname(source.file), specifier)).replaceAll('\\', '/'),
    })),
)

/** `file:line  what stands there` for every place where `pattern` is found in code. */
const places = (pattern: RegExp, isAllowed: (file: string) => boolean = () => false): string[] =>
  sources
    .filter(({ file }) => !isAllowed(file))
    .flatMap(({ file, text }) =>
      text.split('\n').flatMap((line, at) => {
        const isComment = /^\s*(\/?\*|\/\/)/.test(line)
        return !isComment && pattern.test(withoutComments(line)) ? [`${file}:${at + 1}  ${line.trim()}`] : []
      }),
    )

describe('the order of modules', () => {
  test('every file of src is in a module of the list', () => {
    expect(sources.length).toBeGreaterThan(0)
    expect(sources.map(({ file }) => file).filter((file) => !MODULES.includes(moduleOf(file)))).toEqual([])
  })

  test('a module imports only from lower modules and from itself', () => {
    expect(relativeImports.length).toBeGreaterThan(sources.length)
    const upward = relativeImports.filter(
      ({ file, target }) => MODULES.indexOf(moduleOf(target)) > MODULES.indexOf(moduleOf(file)),
    )
    expect(upward.map(({ file, target }) => `${file} imports ${target}`)).toEqual([])
  })

  test('every folder of a module is in the list', () => {
    const unlisted = sources.flatMap(({ file }) => {
      const folder = folderOf(file)
      const isListed = Object.hasOwn(FOLDERS, moduleOf(file)) && FOLDERS[moduleOf(file)]!.includes(folder ?? '')
      return folder === undefined || isListed ? [] : [file]
    })
    expect(unlisted.filter((file) => !file.startsWith('wire/kernel/assembly/'))).toEqual([])
  })

  test('a folder imports only from lower folders of its module', () => {
    const upward = relativeImports.filter(({ file, target }) => {
      const [from, to] = [folderOf(file), folderOf(target)]
      if (moduleOf(file) !== moduleOf(target) || from === undefined || to === undefined) return false
      const order = FOLDERS[moduleOf(file)]
      return order!.indexOf(to) > order!.indexOf(from)
    })
    expect(upward.map(({ file, target }) => `${file} imports ${target}`)).toEqual([])
  })

  test('the folders and files of a module import each other in one direction, types included', () => {
    const partOf = (file: string): string => {
      const folder = folderOf(file)
      return folder === undefined ? file : `${moduleOf(file)}/${folder}`
    }
    const imports = Map.groupBy(
      relativeImports.filter(({ file, target }) => moduleOf(file) === moduleOf(target) && partOf(file) !== partOf(target)),
      ({ file }) => partOf(file),
    )
    const left = new Set(sources.map(({ file }) => partOf(file)))
    // What imports nothing that is left is taken away; what remains in the end stands in a circle, or above one.
    for (let size = -1; size !== left.size;) {
      size = left.size
      for (const part of left) if (!(imports.get(part) ?? []).some(({ target }) => left.has(partOf(target)))) left.delete(part)
    }
    expect([...left]).toEqual([])
  })

  test('relative imports end in .ts or .tsx and lead to a file of src', () => {
    const known = new Set(sources.map(({ file }) => file))
    const broken = relativeImports.filter(({ specifier, target }) => !/\.tsx?$/.test(specifier) || !known.has(target))
    expect(broken.map(({ file, specifier }) => `${file} imports ${specifier}`)).toEqual([])
  })

  test('wire is pure: it does no I/O and knows neither timers nor rxjs', () => {
    const impure = sources
      .filter(({ file }) => moduleOf(file) === 'wire')
      .flatMap((source) =>
        importsOf(source)
          .filter((specifier) => !specifier.startsWith('.') && specifier !== 'node:buffer')
          .map((specifier) => `${source.file} imports ${specifier}`),
      )
    expect(impure).toEqual([])
    expect(places(/\bset(Timeout|Interval|Immediate)\(/, (file) => moduleOf(file) !== 'wire')).toEqual([])
  })

  test('rxjs stays off the call path', () => {
    const below = new Set(['wire', 'transport', 'rpc', 'auth', 'era', 'catalog'])
    const onPath = sources.filter((source) => below.has(moduleOf(source.file)) || source.file === 'gateway/router.ts')
    const streams = onPath.filter((source) => importsOf(source).some((specifier) => specifier.startsWith('rxjs')))
    expect(streams.map(({ file }) => file)).toEqual([])
  })
})

describe('what exists for speed alone', () => {
  const FAST =
    /^(wire\/kernel\/(?!binary)|transport\/http1\/server\/fast\/|transport\/http1\/(client\/(net|response)-|write-batch)|transport\/body-pool)/

  test('each file of the fast path says what it gains in the benchmark', () => {
    const fast = sources.filter(({ file }) => FAST.test(file))
    expect(fast.length).toBeGreaterThan(12)
    expect(fast.filter(({ text }) => !/^\/\*\*[^]*? Gain: .*\d[^]*?\*\//.test(text)).map(({ file }) => file)).toEqual([])
  })
})

describe('one place for each', () => {
  test('only config reads the environment of the process', () => {
    expect(places(/\bprocess\s*(\.\s*env\b|\[)/, (file) => moduleOf(file) === 'config')).toEqual([])
  })

  test('only program.ts and main.ts exit and take signals', () => {
    expect(
      places(/\bprocess\.(exit|abort|on|once)\(|\bprocess\.exitCode\b/, (file) => file === 'program.ts' || file === 'main.ts'),
    ).toEqual([])
  })

  test('nothing writes to the console', () => {
    expect(places(/\bconsole\s*\./)).toEqual([])
  })

  test('only operator-command.ts spells a command that a message names; texts of the reference mark theirs with backticks', () => {
    const isReference = (file: string): boolean => /^config\/schema\/[\w-]+-schema\.ts$|^catalog\/lock\/lock-text\.ts$/.test(file)
    const words = readFileSync(join(SRC, 'cli/command-table.ts'), 'utf8').matchAll(/^\s+\.?command\('(\w+)'/gm)
    const spelled = `trunkline (${[...words].map(([, word]) => word).join('|')}|--help)\\b`
    expect(spelled).toMatch(/\(up\|stdio\|.*\|restart\|/)
    expect(places(new RegExp(spelled), isReference)).toEqual([])
    expect(places(new RegExp(`(?<!\`)${spelled}`), (file) => !isReference(file))).toEqual([])
  })

  test('nothing needs more than Node 22.19, which the package promises', () => {
    const newer =
      /\b((Async)?DisposableStack|Promise\.try|RegExp\.escape|Error\.isError|Float16Array|URLPattern)\b|\.(to|from)(Base64|Hex)\(/
    expect(places(newer)).toEqual([])
  })

  test('nothing has the type any', () => {
    expect(places(/(:|<|\bas|,|\|)\s*any\b(?!['"`\w])/)).toEqual([])
  })
})
