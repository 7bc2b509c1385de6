/**
 * The interop suite: what every host must be able to do with every server that offers the shared table, directly or
 * through the gateway. Call it inside `describe`; each feature is a test of its own.
 */
import { afterAll, beforeAll, expect, test } from 'vitest'
import { connectHost } from '../support/hosts.ts'
import type { Host, HostKind } from '../support/hosts.ts'
import { promptOffers } from '../support/offers/prompts.ts'
import { resourceOffers, templateOffers } from '../support/offers/resources.ts'
import { extraTool, toolOffers } from '../support/offers/tools.ts'
import type { Target } from '../support/processes.ts'
import { features } from './features.ts'
import type { Feature } from './features.ts'

/** What differs between cells. */
export interface MatrixOptions {
  /**
   * The server key its names carry: tools and prompts are `<prefix>__name`, URIs `<prefix>+uri`. Absent: original names.
   */
  prefix?: string
  /** The era an auto host must settle on; a pinned host brings its own. */
  expectEra?: 'legacy' | 'modern'
  /** The features to test; all unless given. */
  only?: readonly Feature[]
}

/**
 * Registers the tests of one cell: a host of this kind against one target. `target` is asked for once, before the
 * first test, so that it can be what a `beforeAll` started. The server must serve more than one page of each list.
 */
export const matrix = (
  kind: HostKind,
  target: () => Target,
  { prefix, expectEra, only = features }: MatrixOptions = {},
): void => {
  const named = (name: string) => (prefix === undefined ? name : `${prefix}__${name}`)
  const located = (uri: string) => (prefix === undefined ? uri : `${prefix}+${uri}`)
  const feature = (name: Feature, run: () => Promise<void>) => {
    if (only.includes(name)) test(name, run)
  }
  let host: Host

  beforeAll(async () => {
    host = await connectHost(kind, target())
  })
  afterAll(() => host.close())

  feature('connects', async () => {
    expect(host.serverName).not.toBe('')
    if (expectEra !== undefined) expect(host.era).toBe(expectEra)
  })

  feature('lists every page of tools', async () => {
    const names = (await host.listTools()).map(({ name }) => name)
    expect(names).toEqual(expect.arrayContaining(toolOffers.map(({ name }) => named(name))))
    expect(new Set(names).size).toBe(names.length)
  })

  feature('lists every page of resources', async () => {
    const uris = (await host.listResources()).map(({ uri }) => uri)
    expect(uris).toEqual(expect.arrayContaining(resourceOffers.map(({ uri }) => located(uri))))
    expect(new Set(uris).size).toBe(uris.length)
  })

  feature('lists every page of resource templates', async () => {
    const templates = (await host.listTemplates()).map(({ uriTemplate }) => uriTemplate)
    expect(templates).toEqual(expect.arrayContaining(templateOffers.map(({ uriTemplate }) => located(uriTemplate))))
    expect(new Set(templates).size).toBe(templates.length)
  })

  feature('lists every page of prompts', async () => {
    const names = (await host.listPrompts()).map(({ name }) => name)
    expect(names).toEqual(expect.arrayContaining(promptOffers.map(({ name }) => named(name))))
    expect(new Set(names).size).toBe(names.length)
  })

  feature('gets progress before the answer to its call', async () => {
    const key = crypto.randomUUID()
    const { promise: complete, resolve } = Promise.withResolvers<void>()
    const seen: number[] = []
    const onProgress = ({ progress }: { progress: number }) => {
      seen.push(progress)
      if (progress === 100) resolve()
    }
    const answer = host.callTool(named('report_until_seen'), { key }, { onProgress })
    await complete
    await host.callTool(named('mark_seen'), { key })
    expect((await answer).content).toMatchObject([{ type: 'text', text: 'Progress was seen.' }])
    expect(seen).toEqual([...new Set(seen)].toSorted((a, b) => a - b))
    expect(seen.at(-1)).toBe(100)
  })

  feature('cancels a call and the server stops it', async () => {
    const key = crypto.randomUUID()
    const cancel = new AbortController()
    const held = expect(host.callTool(named('hold'), { key }, { signal: cancel.signal })).rejects.toThrow()
    await host.callTool(named('await_call'), { key, reached: 'started' })
    cancel.abort(new Error('enough'))
    await held
    const stopped = await host.callTool(named('await_call'), { key, reached: 'cancelled' })
    expect(stopped.content).toMatchObject([{ text: `${key} cancelled` }])
  })

  feature('reads a resource', async () => {
    const [content] = await host.readResource(located('test://static-text'))
    expect(content).toMatchObject({
      uri: located('test://static-text'),
      text: 'This is the content of the static text resource.',
    })
  })

  feature('reads a resource through its template', async () => {
    const [content] = await host.readResource(located('test://pair/salt/pepper'))
    expect(content).toMatchObject({ uri: located('test://pair/salt/pepper'), text: 'salt and pepper' })
  })

  feature('gets a prompt with arguments', async () => {
    const messages = await host.getPrompt(named('test_prompt_with_arguments'), { arg1: 'one', arg2: 'two' })
    expect(messages).toMatchObject([{ role: 'user', content: { text: "Prompt with arguments: arg1='one', arg2='two'" } }])
  })

  feature('completes an argument of a prompt and of a template', async () => {
    const prompt = { type: 'ref/prompt', name: named('test_prompt_with_arguments') } as const
    expect(await host.complete(prompt, { name: 'arg1', value: 'par' })).toEqual(['paris', 'park', 'party'])
    const template = { type: 'ref/resource', uri: located('test://note/{topic}') } as const
    expect(await host.complete(template, { name: 'topic', value: 'ap' })).toEqual(['apples', 'apricots'])
  })

  feature('hears that the list of tools changed', async () => {
    let heard = Promise.withResolvers<void>()
    await host.onToolsChanged(() => heard.resolve())
    const had = await listsExtra()
    await host.callTool(named('test_trigger_tool_change'))
    do {
      await heard.promise
      heard = Promise.withResolvers()
    } while ((await listsExtra()) === had)
    expect(await listsExtra()).toBe(!had)
  })

  feature('hears that a resource it subscribed to changed', async () => {
    const { promise: updated, resolve } = Promise.withResolvers<string>()
    await host.onResourceUpdated(located('test://watched-resource'), resolve)
    await host.callTool(named('touch_watched'))
    expect(await updated).toBe(located('test://watched-resource'))
  })

  const listsExtra = async () => (await host.listTools()).some(({ name }) => name === named(extraTool.name))
}
