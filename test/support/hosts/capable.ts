/** Hosts that can do everything a server may ask for: official clients with sampling, elicitation of both modes, and roots. */
import { Client as Client2, StreamableHTTPClientTransport as Http2 } from '@modelcontextprotocol/client'
import { StdioClientTransport as Stdio2 } from '@modelcontextprotocol/client/stdio'
import { Client as Client1 } from '@modelcontextprotocol/sdk/client/index.js'
import { SSEClientTransport } from '@modelcontextprotocol/sdk/client/sse.js'
import { StdioClientTransport as Stdio1 } from '@modelcontextprotocol/sdk/client/stdio.js'
import { StreamableHTTPClientTransport as Http1 } from '@modelcontextprotocol/sdk/client/streamableHttp.js'
import { CreateMessageRequestSchema, ElicitRequestSchema, ListRootsRequestSchema } from '@modelcontextprotocol/sdk/types.js'
import type { CallResult } from '../hosts.ts'
import type { Target } from '../processes.ts'

export interface CapableHost extends AsyncDisposable {
  /** In order. */
  listTools(): Promise<string[]>
  /** A tool that runs as a task is followed to its end. */
  callTool(name: string, args: Record<string, unknown>): Promise<CallResult>
}

/** What the person, the model and the folders behind a host say. */
export interface Behind {
  /** What the model answers. */
  says: string
  /** What the person fills into a form with these fields. */
  fill: (fields: readonly string[]) => (readonly [field: string, value: string])[]
  root: string
}

const capabilities = { sampling: {}, elicitation: { form: {}, url: {} }, roots: { listChanged: true } }

const answers = ({ says, fill, root }: Behind) => ({
  sample: () => ({ model: 'm', role: 'assistant' as const, content: { type: 'text' as const, text: says } }),
  elicit: (params: object) => {
    const schema = 'requestedSchema' in params ? (params.requestedSchema as { properties: object }) : undefined
    return { action: 'accept' as const, ...(schema && { content: Object.fromEntries(fill(Object.keys(schema.properties))) }) }
  },
  roots: () => ({ roots: [{ uri: root, name: 'root' }] }),
})

/** SDK 1: a legacy host. */
export const connectCapable1 =
  (kind: 'stdio' | 'sse' | 'http') =>
  async (target: Target, behind: Behind): Promise<CapableHost> => {
    const client = new Client1({ name: 'capable-1', version: '1.0.0' }, { capabilities })
    const { sample, elicit, roots } = answers(behind)
    client.setRequestHandler(CreateMessageRequestSchema, sample)
    client.setRequestHandler(ElicitRequestSchema, ({ params }) => elicit(params))
    client.setRequestHandler(ListRootsRequestSchema, roots)
    const transport =
      'command' in target
        ? new Stdio1({ ...target, stderr: 'ignore' })
        : kind === 'sse'
          ? new SSEClientTransport(new URL(target.url))
          : new Http1(new URL(target.url))
    await client.connect(transport)
    return {
      listTools: async () => (await client.listTools()).tools.map(({ name }) => name),
      callTool: async (name, args) => {
        for await (const message of client.experimental.tasks.callToolStream({ name, arguments: args })) {
          if (message.type === 'result') return message.result as CallResult
          if (message.type === 'error') throw message.error
        }
        throw new Error(`${name} ended without a result`)
      },
      [Symbol.asyncDispose]: () => client.close(),
    }
  }

/** SDK 2, pinned to 2026-07-28. */
export const connectCapable2 =
  (kind: 'stdio' | 'http') =>
  async (target: Target, behind: Behind): Promise<CapableHost> => {
    if ('command' in target !== (kind === 'stdio')) throw new Error(`a host over ${kind} cannot reach ${JSON.stringify(target)}`)
    const options = { capabilities, versionNegotiation: { mode: { pin: '2026-07-28' } } } as const
    const client = new Client2({ name: 'capable-2', version: '1.0.0' }, options)
    const { sample, elicit, roots } = answers(behind)
    client.setRequestHandler('sampling/createMessage', sample)
    client.setRequestHandler('elicitation/create', ({ params }) => elicit(params))
    client.setRequestHandler('roots/list', roots)
    await client.connect('command' in target ? new Stdio2({ ...target, stderr: 'ignore' }) : new Http2(new URL(target.url)))
    return {
      listTools: async () => (await client.listTools()).tools.map(({ name }) => name),
      callTool: (name, args) => client.callTool({ name, arguments: args }),
      [Symbol.asyncDispose]: () => client.close(),
    }
  }
