/** MCP Apps by name: the extension under which hosts and servers of either era declare them ([ext apps, Capability Negotiation]). */

export const UI_EXTENSION = 'io.modelcontextprotocol/ui'

/** What a host that runs apps declares, whatever it renders beside HTML. */
export const APPS_EXTENSION = { [UI_EXTENSION]: { mimeTypes: ['text/html;profile=mcp-app'] } }

/** Whether a host, or a server, said that it knows apps. */
export const declaresApps = (capabilities: Readonly<Record<string, unknown>>): boolean =>
  (capabilities['extensions'] as Readonly<Record<string, unknown>> | undefined)?.[UI_EXTENSION] !== undefined
