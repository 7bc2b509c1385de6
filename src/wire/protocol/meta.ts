/** Keys of `_meta` that the protocol or this project defines ([2026-07-28 basic/index, `_meta`]; BRIDGING 2.5, 7.1). */

export const META = {
  version: 'io.modelcontextprotocol/protocolVersion',
  capabilities: 'io.modelcontextprotocol/clientCapabilities',
  clientInfo: 'io.modelcontextprotocol/clientInfo',
  logLevel: 'io.modelcontextprotocol/logLevel',
  serverInfo: 'io.modelcontextprotocol/serverInfo',
  subscriptionId: 'io.modelcontextprotocol/subscriptionId',
  relatedTask: 'io.modelcontextprotocol/related-task',
  /** Ours: the server of a result. */
  server: 'dev.trunkline/server',
  /** Ours: facts about an error of the gateway. */
  gateway: 'dev.trunkline/gateway',
  /** Ours: the configured fault that was injected into the call. */
  fault: 'dev.trunkline/fault',
  /** Ours: names the gateway at a bridge, which sends the host's `clientInfo` to its server. */
  via: 'dev.trunkline/via',
  /** Ours: the number of gateways that a request has passed, so that loops end. */
  hops: 'dev.trunkline/hops',
  /** Ours: the gateways that a handshake answer has passed, the nearest first. */
  gateways: 'dev.trunkline/gateways',
} as const

/** Keys of a host's `_meta` that apply to its exchange with the gateway only and are not relayed. */
export const PER_EXCHANGE: readonly string[] = [META.version, META.capabilities, META.clientInfo, META.logLevel]
