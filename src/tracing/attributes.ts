/**
 * Attributes of spans and metrics: the MCP conventions of OpenTelemetry (semantic-conventions-genai, "Semantic conventions for Model Context
 * Protocol", status Development), and a few of our own under `trunkline.`.
 */
import type { Attributes } from '@opentelemetry/api'
import type { Call } from '../rpc/call.ts'
import { sessionLabel } from '../rpc/session-label.ts'
import type { TracedServer } from '../rpc/call.ts'
import { firstCharacters } from '../values/cut-text.ts'
import type { Id } from '../wire/message/envelope.ts'

/** Attribute for the target of a request, by method. Targets of other methods have too many values. */
const NAME_ATTRIBUTE: Readonly<Record<string, string>> = {
  'tools/call': 'gen_ai.tool.name',
  'prompts/get': 'gen_ai.prompt.name',
}
const WITH_URI: ReadonlySet<string> = new Set(['resources/read', 'resources/subscribe', 'resources/unsubscribe'])

/** Returns `{method} {tool or prompt}`. URIs are omitted, since they would give too many names. */
export const spanName = ({ method, target }: Pick<Call, 'method' | 'target'>): string =>
  target !== undefined && NAME_ATTRIBUTE[method] !== undefined ? `${method} ${target}` : method

/** Returns the attributes of both sides of a request. */
const requestAttributes = ({ method, target }: Pick<Call, 'method' | 'target'>): Attributes => {
  const name = NAME_ATTRIBUTE[method]
  return {
    'mcp.method.name': method,
    ...(method === 'tools/call' && { 'gen_ai.operation.name': 'execute_tool' }),
    ...(target !== undefined && name !== undefined && { [name]: target }),
    ...(target !== undefined && WITH_URI.has(method) && { 'mcp.resource.uri': target }),
  }
}

/** Returns the attributes of the host's side. The session is named by a digest, since its id must stay secret. */
export const hostAttributes = (call: Call, toolset: string | undefined): Attributes => {
  const { caller, responseChannel } = call
  return {
    ...requestAttributes(call),
    ...(responseChannel?.hostId !== undefined && { 'jsonrpc.request.id': idText(responseChannel.hostId) }),
    'mcp.protocol.version': caller.revision,
    ...(caller.session !== undefined && { 'mcp.session.id': sessionLabel(caller.session.id) }),
    ...transportAttributes(responseChannel?.transport ?? 'pipe'),
    'trunkline.ref': call.ref,
    ...(toolset !== undefined && { 'trunkline.toolset': toolset }),
    ...(caller.scope.server !== undefined && { 'trunkline.endpoint': caller.scope.server }),
  }
}

/** Returns the attributes of the server's side, with the server's own names. */
export const serverAttributes = (call: Call, { key, url, revision }: TracedServer): Attributes => ({
  ...requestAttributes(call),
  'mcp.protocol.version': revision,
  ...peerAttributes(url),
  'trunkline.server': key,
})

/** Returns the attributes of the connection to a server. */
export const peerAttributes = (url: URL | undefined): Attributes => ({
  ...transportAttributes(url === undefined ? 'pipe' : 'tcp'),
  ...(url !== undefined && { 'server.address': url.hostname, 'server.port': portOf(url) }),
})

const transportAttributes = (transport: 'pipe' | 'tcp'): Attributes =>
  transport === 'pipe' ? { 'network.transport': 'pipe' } : { 'network.transport': 'tcp', 'network.protocol.name': 'http' }

const portOf = ({ port, protocol }: URL): number => (port === '' ? (protocol === 'https:' ? 443 : 80) : Number(port))

/** Returns a JSON-RPC id as text without quotes. */
const idText = (id: Id): string => {
  const value: unknown = JSON.parse(id)
  return cutText(typeof value === 'string' ? value : id)
}

/** Longest text of a host or a server in a span: thousands of spans may wait for a collector. */
const MAX_CHARACTERS = 1_024

export const cutText = (text: string): string => firstCharacters(text, MAX_CHARACTERS)
