/** Keys of `_meta` that the protocol or this project defines ([2026-07-28 basic/index, `_meta`]; BRIDGING 2.5, 7.1). */

export const META = {
  version: 'io.modelcontextprotocol/protocolVersion',
  capabilities: 'io.modelcontextprotocol/clientCapabilities',
  clientInfo: 'io.modelcontextprotocol/clientInfo',
  logLevel: 'io.modelcontextprotocol/logLevel',
  serverInfo: 'io.modelcontextprotocol/serverInfo',
  subscriptionId: 'io.modelcontextprotocol/subscriptionId',
  relatedTask: 'io.modelcontextprotocol/related-task',
  /** Ours: which server a result came from. */
  server: 'dev.trunkline/server',
  /** Ours: what a gateway-made error says of itself. */
  gateway: 'dev.trunkline/gateway',
  /** Ours: the fault of the configuration that was injected into the call. */
  fault: 'dev.trunkline/fault',
  /** Ours: who speaks for the host whose `clientInfo` a server at a bridge is told. */
  via: 'dev.trunkline/via',
  /** Ours: how many gateways a request has passed, to end loops. */
  hops: 'dev.trunkline/hops',
  /** Ours: which gateways an answer to a handshake leads through, the one that answers first. */
  gateways: 'dev.trunkline/gateways',
} as const

/** Members of a host's `_meta` that describe its own exchange with us and are never relayed. */
export const PER_EXCHANGE: readonly string[] = [META.version, META.capabilities, META.clientInfo, META.logLevel]
