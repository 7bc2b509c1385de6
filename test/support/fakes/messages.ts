/** JSON-RPC as the fakes write and read it: by hand, knowing nothing of `src/`. */

export type JsonMap = Record<string, unknown>

export interface Message {
  jsonrpc: string
  id?: string | number | null
  method?: string
  params?: JsonMap
  result?: JsonMap
  error?: RpcErrorObject
}

export interface RpcErrorObject {
  code: number
  message: string
  data?: JsonMap
}

/** An error answer: thrown by handlers of fakes, rejected with by calls of fake hosts. */
export class RpcError extends Error {
  readonly code: number
  readonly data: JsonMap | undefined
  /** HTTP status it came with, where it came over HTTP. */
  readonly status: number | undefined
  constructor({ code, message, data }: RpcErrorObject, status?: number) {
    super(message)
    this.code = code
    this.data = data
    this.status = status
  }
}

export const KEY = {
  version: 'io.modelcontextprotocol/protocolVersion',
  capabilities: 'io.modelcontextprotocol/clientCapabilities',
  clientInfo: 'io.modelcontextprotocol/clientInfo',
  logLevel: 'io.modelcontextprotocol/logLevel',
  serverInfo: 'io.modelcontextprotocol/serverInfo',
  subscriptionId: 'io.modelcontextprotocol/subscriptionId',
  gateway: 'dev.trunkline/gateway',
} as const

export const MODERN = '2026-07-28'
export const LEGACY = ['2024-11-05', '2025-03-26', '2025-06-18', '2025-11-25'] as const

export const request = (id: string | number, method: string, params?: JsonMap): string =>
  JSON.stringify({ jsonrpc: '2.0', id, method, ...(params !== undefined && { params }) })
export const notification = (method: string, params?: JsonMap): string =>
  JSON.stringify({ jsonrpc: '2.0', method, ...(params !== undefined && { params }) })

export const metaOf = (message: { params?: JsonMap | undefined; result?: JsonMap | undefined } | undefined): JsonMap =>
  ((message?.params ?? message?.result)?.['_meta'] ?? {}) as JsonMap
