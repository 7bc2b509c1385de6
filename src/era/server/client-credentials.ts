/**
 * The extension of clients with tokens of their own ([ext auth/oauth-client-credentials, For MCP clients]). Like all extensions of
 * authorization it applies to one hop: the host's declaration is not relayed to a server (BRIDGING 3.1).
 */
import { jsonObject } from '../../values/json-object.ts'
import type { Declared } from './link.ts'

export const CLIENT_CREDENTIALS = 'io.modelcontextprotocol/oauth-client-credentials'

/** The same capabilities with or without the extension; `hasAccount`: whether the gateway uses client credentials at this server. */
export const withClientCredentials = (capabilities: Declared, hasAccount: boolean): Declared => {
  const extensions = jsonObject(capabilities['extensions'])
  if (!hasAccount && extensions?.[CLIENT_CREDENTIALS] === undefined) return capabilities
  const { [CLIENT_CREDENTIALS]: _, ...others } = extensions ?? {}
  return { ...capabilities, extensions: { ...others, ...(hasAccount && { [CLIENT_CREDENTIALS]: {} }) } }
}
