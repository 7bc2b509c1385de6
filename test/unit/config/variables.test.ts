import { describe, expect, test } from 'vitest'
import { workspace, yaml } from './workspace.ts'

/** The arguments of the only server. */
const argsOf = async (args: string, env: Record<string, string> = {}, files: Record<string, string> = {}) => {
  await using folder = await workspace({ 'trunkline.yaml': `servers:\n  a: { command: x, args: [${args}] }\n`, ...files })
  return (await folder.load(undefined, { env })).servers[0]?.launch?.args
}

describe('variables', () => {
  test.each([
    ['"${A}"', ['one']],
    ['"<${A}-${env:A}>"', ['<one-one>']],
    ['"${NONE:-two}", "${EMPTY:-three}", "${A:-four}", "${NONE:-}"', ['two', 'three', 'one', '']],
    ['"${env:NONE:-five}"', ['five']],
    ['"$${A} $A $$"', ['${A} $A $$']],
    ['"${file:key.txt}"', ['from a file']],
    ['"${input:my-id}"', ['typed']],
  ])('%s', async (written, expected) => {
    const env = { A: 'one', EMPTY: '', INPUT_MY_ID: 'typed' }
    expect(await argsOf(written, env, { 'key.txt': 'from a file\n' })).toEqual(expected)
  })

  test('T-12 what comes out is never looked at again', async () => {
    const env = { A: '${B}', B: 'reached', C: '$(touch x)' }
    expect(await argsOf('"${A}", "${A}${B}", "${C}", "${file:f}"', env, { f: '${B}' })).toEqual([
      '${B}',
      '${B}reached',
      '$(touch x)',
      '${B}',
    ])
  })

  test('a value is text, whatever it looks like', async () => {
    expect(await argsOf('"${A}", "${B}"', { A: 'true', B: '[1, 2]' })).toEqual(['true', '[1, 2]'])
  })

  test('numbers and truth values may come from variables', async () => {
    await using files = await yaml('naming: { max_length: "${LENGTH}" }\nlisten: { http: { sse: "${SSE}" } }\n')
    const configuration = await files.load(undefined, { env: { LENGTH: '60', SSE: 'false' } })
    expect(configuration.gateway.maxNameLength).toBe(60)
    expect(configuration.host.sse).toBe(false)
  })

  test.each([
    ['"${A"', '"${" without its "}"'],
    ['"${A B}"', 'unknown variable ${A B}; known forms'],
    ['"${cmd:ls}"', 'unknown variable ${cmd:ls}; known forms'],
    ['"${A:-${B}}"', '"${" without its "}"'],
    ['"${secret:vault/x}"', 'there is no secret "vault"; add a section "secrets" before its first use'],
    ['"${file:gone}"', '${file:gone} cannot be read (ENOENT); relative paths count from'],
    ['"${file:.}"', '${file:.} is not a file'],
    ['"${input:token}"', '${input:token} has no value, and Trunkline does not ask; set the environment variable INPUT_TOKEN'],
    ['"${constructor}"', 'variable constructor is not set'],
  ])('%s is refused', async (written, message) => {
    await using files = await yaml(`servers:\n  a: { command: x, args: [${written}] }\n`)
    const errors = await files.errors(undefined, { env: { B: 'b' } })
    expect(errors).toHaveLength(1)
    expect(errors[0]).toContain(`servers.a.args[0]: ${message}`)
  })

  test('a server that is switched off may name variables that are not set', async () => {
    await using files = await yaml('servers:\n  crm: { url: "${CRM}", credentials: { bearer: "${KEY}" }, enabled: false }\n')
    expect((await files.load()).servers).toEqual([])
  })

  test('env_file gives values, later files win, the environment wins over all; none of it reaches a process', async () => {
    await using files = await workspace({
      'trunkline.yaml':
        'env_file: [a.env, "${WHICH}.env"]\nservers:\n  a: { command: x, args: ["${ONE}", "${TWO}", "${THREE}"] }\n',
      'a.env': 'ONE=a\nTWO=a\nTHREE=a # a remark\n',
      'b.env': 'TWO="b b"\nTHREE=b\n',
    })
    const { servers, files: read } = await files.load(undefined, { env: { WHICH: 'b', THREE: 'ours' } })
    expect(servers[0]?.launch).toMatchObject({ args: ['a', 'b b', 'ours'], env: {} })
    expect(read).toEqual(['trunkline.yaml', 'a.env', 'b.env'].map((name) => files.path(name)))
  })

  test('files read for a value are watched too', async () => {
    await using files = await workspace({ 'trunkline.yaml': 'servers:\n  a: { command: x, args: ["${file:k}"] }\n', k: 'v' })
    expect((await files.load()).files).toContain(files.path('k'))
  })
})
