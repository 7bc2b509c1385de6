/**
 * The extension for clients that authenticate with client credentials ([ext auth/oauth-client-credentials, For MCP clients]).
 * Authorization applies to one hop, so a host's declaration is not relayed to a server (BRIDGING 3.1).
 */
import { jsonObject } from '../../values/json-object.ts'
import type { Declared } from './link.ts'

const CLIENT_CREDENTIALS = 'io.modelcontextprotocol/oauth-client-credentials'

/** The capabilities with the extension exactly if `isUsed`: whether the gateway uses client credentials at this server. */
export const withClientCredentials = (capabilities: Declared, isUsed: boolean): Declared => {
  const extensions = jsonObject(capabilities['extensions'])
  if (!isUsed && extensions?.[CLIENT_CREDENTIALS] === undefined) return capabilities
  const { [CLIENT_CREDENTIALS]: _, ...others } = extensions ?? {}
  return { ...capabilities, extensions: { ...others, ...(isUsed && { [CLIENT_CREDENTIALS]: {} }) } }
}
