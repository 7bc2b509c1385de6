import { readFile } from 'node:fs/promises'
import { Ajv2020 } from 'ajv/dist/2020.js'
import { describe, expect, test } from 'vitest'
import { parse } from 'yaml'
import { generate } from '../../../scripts/generate.ts'
import { loadConfiguration } from '../../../src/config/load.ts'
import { workspace } from './workspace.ts'

const root = new URL('../../../', import.meta.url)
const read = (path: string) => readFile(new URL(path, root), 'utf8')

const validator = async () => {
  const ajv = new Ajv2020({ strict: true, allowUnionTypes: true, allErrors: true })
  return ajv.compile(JSON.parse(await read('schema/v1.json')) as object)
}

/** YAML snippets of a page. */
const snippets = async (page: string) =>
  [...(await read(page)).matchAll(/^```ya?ml\n([^]*?)^```$/gm)].map(([, text]) => text ?? '')

describe('what is generated from the schema', () => {
  test('is what stands in the project; `node scripts/generate.ts` writes it anew', async () => {
    for (const [path, text] of await generate()) expect(await read(path), path).toBe(text)
  })

  test('the JSON Schema accepts the demo and every snippet of the documentation', async () => {
    const validate = await validator()
    const texts = [await read('config/trunkline.yaml'), ...(await snippets('docs/configuration.md'))]
    expect(texts.length).toBeGreaterThan(2)
    for (const text of texts) expect(validate(parse(text)), `${text}\n${JSON.stringify(validate.errors)}`).toBe(true)
  })

  test.each([
    ['an unknown key', { servers: { a: { comand: 'x' } } }],
    ['a number for a duration', { reload: { drain: 5 } }],
    ['a key that breaks the rule', { servers: { A_b: { command: 'x' } } }],
    ['a word that is no choice', { naming: { prefix: 'sometimes' } }],
    ['another version', { version: 2 }],
  ])('the JSON Schema refuses %s', async (_, value) => {
    expect((await validator())(value)).toBe(false)
  })

  test('the JSON Schema lets variables stand anywhere', async () => {
    const validate = await validator()
    const value = {
      listen: { http: { sse: '${A}', bind: '${B}' } },
      naming: { prefix: '${C}', max_length: '${D}' },
      reload: { drain: '${E}' },
      servers: { a: { url: '${F}/mcp', limits: { max_message: '${G}' }, prefix: '${H}' } },
    }
    expect(validate(value), JSON.stringify(validate.errors)).toBe(true)
  })

  test('every snippet of the documentation loads', async () => {
    for (const text of await snippets('docs/configuration.md')) {
      await using files = await workspace({ 'trunkline.yaml': text, '.mcp.json': '{ "mcpServers": {} }', '.env': '' })
      expect((await files.load()).files[0]).toBe(files.path('trunkline.yaml'))
    }
  })
})

describe('config/trunkline.yaml', () => {
  test('loads as it is, in any surroundings, and names what stands in the project', async () => {
    const folder = new URL('.', root).pathname.replace(/\/$/, '')
    const context = { env: {}, cwd: folder, home: '/nowhere' }
    const { servers, host, warnings } = await loadConfiguration({ files: ['config/trunkline.yaml'] }, context)
    expect(warnings).toEqual([])
    expect(host.addresses.map(({ port }) => port)).toEqual([7420, 7420])
    expect(servers.map(({ key, transport, url }) => [key, transport, url?.href])).toEqual([
      ['everything', 'auto', undefined],
      ['files', 'auto', undefined],
      ['memory', 'auto', undefined],
      ['thinking', 'auto', undefined],
      ['everything-http', 'http', 'http://127.0.0.1:7431/mcp'],
      ['everything-sse', 'sse', 'http://127.0.0.1:7432/sse'],
    ])
    for (const { launch } of servers) {
      expect(launch).toMatchObject({ command: 'node', cwd: folder })
      for (const path of launch!.args.filter((arg) => /\.m?js$/.test(arg))) expect(await read(path), path).not.toBe('')
    }
  })
})
