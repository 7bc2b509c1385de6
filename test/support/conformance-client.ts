/**
 * Trunkline as the client that the conformance suite tests: a gateway in front of the suite's server, and an official client of each era
 * that does through it what the scenario asks for. The suite starts a command for each scenario; `children/conformance-command.mjs` passes
 * on to this process what the suite told it, so that no scenario loads the clients and the gateway again.
 */
import { createServer } from 'node:net'
import { text } from 'node:stream/consumers'
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client'
import type { ClientCapabilities, Tool } from '@modelcontextprotocol/client'
import type * as Library from '../../src/index.ts'
import { Browser } from './browser.ts'
import { listening } from './listening.ts'
import type { Listening } from './listening.ts'
import { LIBRARY } from './program.ts'

const capabilities: ClientCapabilities = { elicitation: { form: { applyDefaults: true }, url: {} }, sampling: {}, roots: {} }

/** Its person accepts every form as it stands, and signs in wherever that is asked for. */
const connect = async (url: string, era: 'legacy' | 'modern'): Promise<Client> => {
  const mode = era === 'legacy' ? 'legacy' : { pin: '2026-07-28' }
  const client = new Client({ name: `${era}-host`, version: '1.0.0' }, { capabilities, versionNegotiation: { mode } })
  client.setRequestHandler('elicitation/create', async ({ params }) => {
    if (params.mode !== 'url') return { action: 'accept', content: {} }
    await new Browser().signIn(params.url)
    return { action: 'accept' }
  })
  await client.connect(new StreamableHTTPClientTransport(new URL(url)))
  return client
}

/** What the suite says of the scenario: calls to make, or how its authorization server knows us. */
export interface Context {
  toolCalls?: ToolCall[]
  client_id?: string
  client_secret?: string
  private_key_pem?: string
  signing_algorithm?: string
}

/** What the suite tells the command that it starts: the URL of its server, and the environment. */
export interface Leg {
  readonly url: string
  readonly scenario: string
  readonly context: Context
}

/** How a configuration would say it. */
const credentials = ({ scenario, context }: Leg): object => {
  const { client_id, client_secret, private_key_pem: private_key, signing_algorithm: algorithm } = context
  const secret = client_secret === undefined ? {} : { client_secret }
  if (scenario.startsWith('auth/client-credentials'))
    return { client_credentials: { client_id, ...secret, ...(private_key === undefined ? {} : { private_key, algorithm }) } }
  const known =
    client_id === undefined ? { client_metadata_url: 'https://conformance-test.local/client-metadata.json' } : { client_id }
  return { oauth: { per_user: true, ...known, ...secret } }
}

interface ToolCall {
  name: string
  arguments?: Record<string, unknown>
}

/** The calls the suite names, or each tool once, with what the scenario needs to see; one scenario serves nothing but its list. */
const callsOf = ({ scenario, context: { toolCalls } }: Leg, tools: Tool[]): ToolCall[] => {
  if (scenario === 'json-schema-ref-no-deref') return []
  const schema = tools.find(({ name }) => name === 'json_schema_2020_12_tool')?.inputSchema
  const args: Record<string, Record<string, unknown>> = { add_numbers: { a: 2, b: 3 }, json_schema_echo: { schema } }
  return toolCalls ?? tools.map(({ name }) => ({ name, arguments: args[name] ?? {} }))
}

/** Everything at once, so that what belongs to one call can turn up in another. */
const useAll = async (leg: Leg, client: Client): Promise<void> => {
  const { tools: first } = await client.listTools()
  if (first.some(({ name }) => name === 'sign_in')) await client.callTool({ name: 'sign_in' })
  const { tools } = await client.listTools()
  const offers = client.getServerCapabilities()
  const prompts = offers?.prompts === undefined ? [] : (await client.listPrompts()).prompts
  const resources = offers?.resources === undefined ? [] : (await client.listResources()).resources
  const results = await Promise.all([
    ...callsOf(leg, tools).map((call) => client.callTool(call)),
    ...prompts.map(({ name }) => client.getPrompt({ name })),
    ...resources.map(({ uri }) => client.readResource({ uri })),
  ])
  const failed = results.find((result) => result['isError'] === true)
  if (failed !== undefined) throw new Error(`a tool failed: ${JSON.stringify(failed)}`)
}

/**
 * Scenarios that judge every POST as a modern one. For its legacy host Trunkline would ask the server for a handshake, too (B267), so
 * the configuration says which era it is.
 */
const MODERN_ONLY = new Set(['request-metadata', 'http-standard-headers'])

/** Resolves once a host of each era has done what the scenario asks for. Rejects when a call does not work. */
const actAsClient = async (leg: Leg): Promise<void> => {
  const { url, scenario } = leg
  const server = {
    url,
    ...(scenario.startsWith('auth/') && { credentials: credentials(leg) }),
    ...(MODERN_ONLY.has(scenario) && { era: 'modern' }),
  }
  const { createGateway } = (await import(LIBRARY)) as typeof Library
  await using gateway = await createGateway({
    configuration: {
      version: 1,
      listen: { http: { bind: '127.0.0.1:0' } },
      naming: { prefix: 'never' },
      telemetry: { log: { level: 'error' } },
      servers: { suite: server },
    },
  })
  for (const era of ['legacy', 'modern'] as const) {
    const client = await connect(gateway.urls[0] ?? '', era)
    await useAll(leg, client)
    await client.close()
  }
}

/** Listens for `children/conformance-command.mjs`: a connection says one leg, and gets what went wrong; nothing is well. */
export const openConformanceClient = (): Promise<Listening> => {
  const listener = createServer({ allowHalfOpen: true }, async (socket) => {
    const failed = await text(socket)
      .then((leg) => actAsClient(JSON.parse(leg) as Leg))
      .then(
        () => '',
        (error: unknown) => (error instanceof Error ? (error.stack ?? error.message) : String(error)),
      )
    socket.on('error', () => undefined).end(failed)
  })
  return listening(listener)
}
