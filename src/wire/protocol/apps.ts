/** MCP Apps by name: the extension under which hosts and servers of either era declare them ([ext apps, Capability Negotiation]). */
import { memberOf } from '../../values/json-object.ts'

export const UI_EXTENSION = 'io.modelcontextprotocol/ui'

/** The declaration of a host that runs apps. */
export const APPS_EXTENSION = { [UI_EXTENSION]: { mimeTypes: ['text/html;profile=mcp-app'] } }

/** Whether the capabilities of a host or a server declare apps. */
export const declaresApps = (capabilities: Readonly<Record<string, unknown>>): boolean =>
  memberOf(capabilities['extensions'], UI_EXTENSION) !== undefined
