/** What a gateway asks a policy service with the policy of `examples/policy`, and what its host gets: with a real one, or a kept exchange. */
import { DEFAULT_SERVICE } from '../../../src/policy/options.ts'
import { fake } from '../../support/fake-downstream.ts'
import { modernHttp } from '../../support/fake-host.ts'
import type { JsonMap } from '../../support/fakes/messages.ts'
import { startGateway } from '../../support/gateway.ts'

const CALLS: readonly (readonly [name: string, args: JsonMap])[] = [
  ['get-env', {}],
  ['get-sum', { a: 1, b: 2 }],
  ['get-sum', { a: 1, b: 2000 }],
  ['echo', { message: 'hello' }],
]

/** Names that were listed, then what each call got: a text, or the question to a person. */
export const SEEN: readonly string[] = [
  'everything__get-sum everything__echo',
  'denied by policy: The environment of the server holds secrets.',
  '{"a":1,"b":2}',
  'Sums of numbers above 1000 are confirmed. Call everything__get-sum with {"a":1,"b":2000}?',
  '{"message":"hello"}',
]

/** Plays it against the service at `url`. */
export const play = async (url: URL): Promise<readonly string[]> => {
  await using gateway = await startGateway({
    servers: { everything: fake.of({ kind: 'modern http', tools: ['get-env', 'get-sum', 'echo'] }) },
    policy: { service: { ...DEFAULT_SERVICE, url, timeoutMs: 5_000 } },
  })
  await using host = await modernHttp.connect(gateway, { capabilities: { elicitation: { form: {} } } })
  const { tools } = await host.call('tools/list')
  const seen = [(tools as JsonMap[]).map(({ name }) => name).join(' ')]
  for (const [name, args] of CALLS) {
    const { content, inputRequests } = await host.call('tools/call', { name: `everything__${name}`, arguments: args })
    const asked = Object.values((inputRequests ?? {}) as Record<string, { params: JsonMap }>)[0]
    seen.push(String(asked === undefined ? (content as JsonMap[])[0]!['text'] : asked.params['message']))
  }
  return seen
}

/** One question and its answer. */
export interface Exchanged {
  /** Without the time of its request. */
  readonly input: JsonMap
  readonly answer: unknown
}

/** The question that is the same whenever it is asked. */
export const withoutTime = (body: string): JsonMap => {
  const { input } = JSON.parse(body) as { input: JsonMap }
  const { time: _, ...request } = input['request'] as JsonMap
  return { ...input, request }
}
