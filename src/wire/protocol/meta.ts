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
  /** Ours: facts of an error that the gateway made. */
  gateway: 'dev.trunkline/gateway',
  /** Ours: the fault of the configuration that was injected into the call. */
  fault: 'dev.trunkline/fault',
  /** Ours: names the gateway where a bridge sends the host's `clientInfo` to its server. */
  via: 'dev.trunkline/via',
  /** Ours: how many gateways a request has passed, to end loops. */
  hops: 'dev.trunkline/hops',
  /** Ours: the gateways behind a handshake answer, the answering gateway first. */
  gateways: 'dev.trunkline/gateways',
} as const

/** Members of a host's `_meta` that apply to its exchange with the gateway and are not relayed. */
export const PER_EXCHANGE: readonly string[] = [META.version, META.capabilities, META.clientInfo, META.logLevel]
