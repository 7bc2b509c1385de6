/** What the Inspector's command line must do without a complaint, directly or through the gateway. */
import { expect, test } from 'vitest'
import { inspect } from '../support/inspector.ts'
import type { InspectorEra } from '../support/inspector.ts'
import { toolOffers } from '../support/offers/tools.ts'
import type { Target } from '../support/processes.ts'

/**
 * Registers the tests of one cell against a server that offers the shared table. `prefix` is the server key that its
 * names and URIs carry through the gateway, as in the matrix.
 */
export const inspectorSuite = (target: () => Target, era: InspectorEra, { prefix }: { prefix?: string } = {}): void => {
  const named = (name: string) => (prefix === undefined ? name : `${prefix}__${name}`)
  const uri = `${prefix === undefined ? '' : `${prefix}+`}test://static-text`

  test('lists every tool without a complaint', async () => {
    const { exitCode, result, complaints } = await inspect(target(), era, { method: 'tools/list' })
    expect({ exitCode, complaints }).toEqual({ exitCode: 0, complaints: '' })
    const names = (result?.tools as { name: string }[] | undefined)?.map(({ name }) => name)
    expect(names).toEqual(expect.arrayContaining(toolOffers.map(({ name }) => named(name))))
  })

  test('calls a tool without a complaint', async () => {
    const answer = await inspect(target(), era, { method: 'tools/call', tool: named('echo'), args: { text: 'hi' } })
    expect(answer).toMatchObject({ exitCode: 0, complaints: '', result: { content: [{ type: 'text', text: 'hi' }] } })
  })

  test('reads a resource and gets a prompt without a complaint', async () => {
    const prompt = named('test_prompt_with_arguments')
    const [read, got] = await Promise.all([
      inspect(target(), era, { method: 'resources/read', uri }),
      inspect(target(), era, { method: 'prompts/get', prompt, args: { arg1: 'a', arg2: 'b' } }),
    ])
    expect(read).toMatchObject({ exitCode: 0, complaints: '', result: { contents: [{ uri }] } })
    expect(got).toMatchObject({ exitCode: 0, complaints: '', result: { messages: [{ role: 'user' }] } })
  })
}
