/**
 * The extension by which a client says that it brings tokens of its own ([ext auth/oauth-client-credentials, For MCP clients]). Like
 * all extensions of authorization it is about one hop: what a host is to us, we are not to a server (BRIDGING 3.1).
 */
import type { Declared } from './link.ts'

export const CLIENT_CREDENTIALS = 'io.modelcontextprotocol/oauth-client-credentials'

/** The same capabilities with the extension, or without it: `hasAccount` is whether we are a client of that kind to this server. */
export const withOwnAccount = (capabilities: Declared, hasAccount: boolean): Declared => {
  const extensions = capabilities['extensions'] as Readonly<Record<string, unknown>> | undefined
  if (!hasAccount && extensions?.[CLIENT_CREDENTIALS] === undefined) return capabilities
  const { [CLIENT_CREDENTIALS]: _, ...others } = extensions ?? {}
  return { ...capabilities, extensions: { ...others, ...(hasAccount && { [CLIENT_CREDENTIALS]: {} }) } }
}
