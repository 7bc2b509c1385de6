/** The four duration histograms of the MCP conventions, in seconds. Their attributes have few values: only existing names of tools and methods, and reserved codes. */
import type { Attributes, Histogram, Meter } from '@opentelemetry/api'
import { METHODS } from '../wire/protocol/methods.ts'

/** Bucket boundaries of the conventions. */
const BOUNDARIES = [0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 30, 60, 120, 300]

/** Attributes with too many values for metrics. */
const ONLY_ON_SPANS: ReadonlySet<string> = new Set([
  'jsonrpc.request.id',
  'mcp.session.id',
  'mcp.resource.uri',
  'trunkline.ref',
  'gen_ai.tool.call.arguments',
  'gen_ai.tool.call.result',
])

export interface Histograms {
  readonly serverOperation: Histogram
  readonly clientOperation: Histogram
  readonly serverSession: Histogram
  readonly clientSession: Histogram
}

export const makeHistograms = (meter: Meter): Histograms => {
  const make = (name: string, description: string): Histogram =>
    meter.createHistogram(name, { unit: 's', description, advice: { explicitBucketBoundaries: BOUNDARIES } })
  return {
    serverOperation: make('mcp.server.operation.duration', 'Requests of hosts, until they were answered.'),
    clientOperation: make('mcp.client.operation.duration', 'Requests to servers, until they were answered.'),
    serverSession: make('mcp.server.session.duration', 'Sessions of hosts.'),
    clientSession: make('mcp.client.session.duration', 'Connections to servers.'),
  }
}

/**
 * Returns the attributes for metrics. `isKnown`: the name is in the catalog; a name that the caller chose is omitted, and a method that it
 * chose, which a bridge relays, is `_OTHER`. So is a code that a server chose.
 */
export const metricAttributes = (attributes: Attributes, isKnown: boolean): Attributes => {
  const { 'rpc.response.status_code': code, ...others } = attributes
  const hasReserved = code !== undefined && isReserved(Number(code))
  return {
    ...Object.fromEntries(
      Object.entries(others).filter(
        ([name]) => !ONLY_ON_SPANS.has(name) && (isKnown || (name !== 'gen_ai.tool.name' && name !== 'gen_ai.prompt.name')),
      ),
    ),
    ...(METHODS[String(attributes['mcp.method.name'])] === undefined && { 'mcp.method.name': '_OTHER' }),
    ...(hasReserved && { 'rpc.response.status_code': code }),
    ...(code !== undefined && !hasReserved && { 'error.type': '_OTHER' }),
  }
}

/** Whether JSON-RPC or MCP defines or reserves a code. */
const isReserved = (code: number): boolean =>
  code === -32_700 || (code >= -32_603 && code <= -32_600) || (code >= -32_099 && code <= -32_000)
