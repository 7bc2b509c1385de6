/** Where secrets come from, and what is said of those that do not come (`secrets`, `${secret:…}`). */
import { chmod, readFile, writeFile } from 'node:fs/promises'
import { describe, expect, test } from 'vitest'
import type { SecretMemory } from '../../../src/config/runtime-environment.ts'
import { workspace } from './workspace.ts'
import type { Workspace } from './workspace.ts'

/** A program for `exec`: JavaScript without `'` or `"` needing care in YAML. */
const program = (script: string, ...args: readonly string[]): string => JSON.stringify([process.execPath, '-e', script, ...args])
const NODE = JSON.stringify(process.execPath)

/** One server whose only argument is `text`. */
const withSecrets = (secrets: string, text: string): Promise<Workspace> =>
  workspace({ 'trunkline.yaml': `secrets:\n  ${secrets}\nservers:\n  a: { command: x, args: ["${text}"] }\n` })

const argument = async (files: Workspace, context: object = {}): Promise<string | undefined> =>
  (await files.load(undefined, { env: { PATH: '' }, ...context })).servers[0]?.launch?.args[0]

/** A command of that name, first on the path of what is started. */
const tool = async (files: Workspace, name: string, script: string): Promise<object> => {
  await files.write(`bin/${name}`, `#!/bin/sh\n${script}\n`, 0o700)
  return { env: { PATH: files.path('bin') }, platform: name === 'security' ? 'darwin' : 'linux' }
}

describe('a secret comes from', () => {
  test('a file, without the line end at its end', async () => {
    await using files = await withSecrets('db: { file: ./db.key }', '<${secret:db}>')
    await files.write('db.key', 'file-value\n')
    expect(await argument(files)).toBe('<file-value>')
    expect((await files.load()).files).toContain(files.path('db.key'))
  })

  test('a variable of the environment, whose name may depend on the name of the secret', async () => {
    await using files = await withSecrets('all: { env: "KEY_${name}" }', '${secret:all/GITHUB}')
    expect(await argument(files, { env: { KEY_GITHUB: 'from-env' } })).toBe('from-env')
  })

  test('a program, started without a shell in the folder of the file, with the name as it is', async () => {
    const script = 'process.stdout.write(process.argv[1] + ` in ` + process.cwd() + `\\n`)'
    await using files = await withSecrets(`vault: { exec: ${program(script, 'op://dev/${name}')} }`, '${secret:vault/a/b $(x)}')
    expect(await argument(files)).toBe(`op://dev/a/b $(x) in ${files.folder}`)
  })

  test.each([
    ['secret-tool', 'lookup service trunkline account files'],
    ['security', 'find-generic-password -s trunkline -a files -w'],
  ])('the keyring, by %s', async (name, words) => {
    await using files = await withSecrets('ring: { keyring: { service: trunkline, account: "${name}" } }', '${secret:ring/files}')
    expect(await argument(files, await tool(files, name, 'echo "$@"'))).toBe(words)
  })

  test('T-12 what comes out is never looked at again, nor what variables put in', async () => {
    await using files = await withSecrets('a: { env: "${WHICH}" }', '${secret:a}')
    expect(await argument(files, { env: { WHICH: '${name}', '${name}': '${secret:a}' } })).toBe('${secret:a}')
  })
})

describe('a secret that does not come is told with its place, the reason and a remedy', () => {
  const at = 'trunkline.yaml:4:27 servers.a.args[0]: '
  test.each([
    ['a: { env: GONE }', '${secret:b}', 'there is no secret "b"; known: a'],
    ['a: { env: GONE }', '${secret:a}', '${secret:a}: variable GONE is not set; set it'],
    ['a: { env: A }', '${secret:a/b}', 'secret "a" is one value; write ${secret:a}'],
    ['a: { env: "A_${name}" }', '${secret:a}', 'secret "a" has many values; write ${secret:a/name}'],
    ['a: { env: EMPTY }', '${secret:a}', '${secret:a} is empty; give it a value'],
    ['a: { file: ./gone }', '${secret:a}', '${secret:a}: ${file:./gone} cannot be read (ENOENT); relative paths count from'],
    ['a: { exec: [no-such-program] }', '${secret:a}', '${secret:a}: no-such-program was not found; install it'],
  ])('%s for %s', async (secrets, text, message) => {
    await using files = await withSecrets(secrets, text)
    expect(await files.errors(undefined, { env: { PATH: '', EMPTY: '' } })).toEqual([expect.stringContaining(at + message)])
  })

  test('T-14 a program that fails is told by its code and its words, never by the value', async () => {
    const script = 'console.log(`half-a-value`); console.error(`locked:\\nhalf-a-value and DB-VALUE`); process.exit(3)'
    await using files = await withSecrets(`db: { env: DB }\n  a: { exec: ${program(script)} }`, '${secret:db}${secret:a}')
    const [error] = await files.errors(undefined, { env: { PATH: '', DB: 'DB-VALUE' } })
    expect(error).toContain(`\${secret:a}: ${process.execPath} exited with code 3: locked: *** and ***; run it in a terminal`)
  })

  test('a program has its time, and a bound for what it prints', async () => {
    const endless = 'setInterval(() => undefined, 1000)'
    const large = 'process.stdout.write(`x`.repeat(100000))'
    await using slow = await withSecrets(`a: { exec: ${program(endless)}, timeout: 100ms }`, '${secret:a}')
    expect(await slow.errors()).toEqual([expect.stringContaining('did not end within 0.1 s')])
    await using wide = await withSecrets(`a: { exec: ${program(large)} }`, '${secret:a}')
    expect(await wide.errors()).toEqual([expect.stringContaining('printed more than 64 KiB')])
  })

  test('the keyring says how to store what is missing, and that Windows has none', async () => {
    await using files = await withSecrets('ring: { keyring: { service: s, account: a } }', '${secret:ring}')
    const [missing] = await files.errors(undefined, await tool(files, 'secret-tool', 'exit 1'))
    expect(missing).toContain('secret-tool exited with code 1; store it: secret-tool store --label=Trunkline service s account a')
    const [windows] = await files.errors(undefined, { platform: 'win32' })
    expect(windows).toContain('there is no keyring tool on Windows; use exec with your password manager, or env')
  })

  test.each([
    ['a: {}', 'secrets.a: no source is given; give one of file, env, exec, keyring'],
    ['a: { file: x, env: Y }', 'secrets.a: file and env are given; give one of'],
    ['a: { exec: [] }', 'secrets.a.exec: exec names no program'],
    ['a: { keyring: { service: s } }', 'secrets.a.keyring: keyring needs service and account'],
    ['a: { env: X, cache: 1m }', 'secrets.a.cache: "cache" without exec or keyring has no effect; remove it'],
    ['a: { env: "${secret:b}" }', 'secrets.a.env: a secret is not made of another'],
    ['a: { exce: [x] }', 'secrets.a: unknown key "exce"; did you mean "exec"?'],
    ['"a b": { env: X }', 'secrets."a b": "a b" is not a name for a secret'],
  ])('%s is refused once, where it stands', async (secrets, message) => {
    await using files = await withSecrets(secrets, '${secret:a}')
    const errors = (await files.errors()).filter((error) => !error.includes('there is no secret "a"'))
    expect(errors).toEqual([expect.stringContaining(message)])
  })
})

describe('a program is asked', () => {
  /** Appends a line to `asked` each time and prints how many there are. */
  const counting = `const fs = require(\`node:fs\`); fs.appendFileSync(\`asked\`, \`x\`); console.log(\`value-\` + fs.readFileSync(\`asked\`).length)`
  const texts = '${secret:a}${secret:a}'

  test('once in one reading, and for nothing that is not used or belongs to a server that is off', async () => {
    await using files = await workspace({
      'trunkline.yaml': [
        `secrets: { a: { exec: ${program(counting)} }, unused: { exec: ${program(counting)} } }`,
        `servers:`,
        `  a: { command: x, args: ["${texts}", "\${secret:a}"] }`,
        `  off: { command: x, args: ["\${secret:unused}"], enabled: false }`,
      ].join('\n'),
    })
    const { servers, secrets } = await files.load()
    expect(servers.map(({ key, launch }) => [key, launch?.args])).toEqual([['a', ['value-1value-1', 'value-1']]])
    expect(await readFile(files.path('asked'), 'utf8')).toBe('x')
    expect(secrets).toContain('value-1')
  })

  test.each([
    ['', 'value-2'],
    [', cache: 1h', 'value-1'],
    [', cache: 1ms', 'value-2'],
  ])('again by a reload, unless the value may be kept (%s)', async (cache, second) => {
    await using files = await withSecrets(`a: { exec: ${program(counting)}${cache} }`, '${secret:a}')
    const memory: SecretMemory = new Map()
    expect(await argument(files, { memory })).toBe('value-1')
    for (const [key, kept] of memory) memory.set(key, { ...kept, readMs: kept.readMs - 60_000 })
    expect(await argument(files, { memory })).toBe(second)
  })
})

test('files that others can reach are told, and a secret too short to be hidden', async () => {
  await using files = await withSecrets('a: { file: ./a }', '${secret:a}')
  await writeFile(files.path('a'), 'abc')
  await chmod(files.path('a'), 0o644)
  const { warnings } = await files.load()
  expect(warnings).toContain(`${files.path('a')} contains a secret and is open to other users (mode 644); chmod 600 it`)
  expect(warnings.some((warning) => warning.includes('${secret:a} is shorter than 4 characters'))).toBe(true)
})

test('secrets of the main file serve the files it includes, and every value is one to hide (T-14)', async () => {
  await using files = await workspace({
    'trunkline.yaml': 'include: [./more.yaml]\nsecrets: { a: { env: A } }\n',
    'more.yaml': `servers:\n  a: { command: ${NODE}, args: ["\${secret:a}"] }\n`,
  })
  const { servers, secrets } = await files.load(undefined, { env: { A: 'plain-word' } })
  expect(servers[0]?.launch?.args).toEqual(['plain-word'])
  expect(secrets).toContain('plain-word')
})

test.each([
  ['trunkline.yaml', 'servers:\n  a: '],
  ['.mcp.json', '{"mcpServers": {"a": '],
])('T-14 what import would move to .env is hidden where it stands in %s', async (name, before) => {
  const entry = {
    command: 'x',
    args: [
      '--token',
      'after-1',
      '--api-key=equals-2',
      'Authorization: Bearer header-3',
      'pg://me:login-4@h/db',
      '--level',
      'debugging',
    ],
    env: {
      DATABASE_URL: 'postgres://me:login-5@h/db',
      OPENAI_KEY: 'key-6-x',
      SENTRY_DSN: 'https://dsn-7@sentry.test/1',
      APP_PWD: 'correcthorse',
      ANY: `ghp_${'a1'.repeat(10)}`,
      SORT_KEY: 'created_at',
      LEVEL: 'debugging',
    },
  }
  await using files = await workspace({ [name]: before + JSON.stringify(entry) + (name.endsWith('.json') ? '}}' : '') })
  const { secrets, credentials } = await files.load(name)
  const found = [
    'after-1',
    'equals-2',
    'header-3',
    'login-4',
    'login-5',
    'key-6-x',
    'https://dsn-7@sentry.test/1',
    'correcthorse',
  ]
  expect(secrets).toEqual(expect.arrayContaining([...found, entry.env.ANY]))
  for (const word of ['created_at', 'debugging']) expect(secrets).not.toContain(word)
  // A definition that repeats a credential is withheld: a word that is no secret must not be one.
  expect(credentials).toEqual([])
})
