/** The extensions that the gateway knows, MCP Apps and tasks: their names and the capabilities that declare them. */
import { jsonObject, memberOf } from '../../values/json-object.ts'

type Capabilities = Readonly<Record<string, unknown>>

/** Name of MCP Apps, which hosts and servers of either era declare ([ext apps, Capability Negotiation]). */
export const UI_EXTENSION = 'io.modelcontextprotocol/ui'

/** What a host that runs apps declares. */
export const APPS_EXTENSION = { [UI_EXTENSION]: { mimeTypes: ['text/html;profile=mcp-app'] } }

/** Whether the capabilities of a host or a server declare apps. */
export const declaresApps = (capabilities: Capabilities): boolean =>
  memberOf(capabilities['extensions'], UI_EXTENSION) !== undefined

/** Name of the tasks of 2026-07-28 ([ext tasks]). Legacy tasks are a capability ([2025-11-25 basic/utilities/tasks]; BRIDGING 3.17). */
export const TASKS = 'io.modelcontextprotocol/tasks'

/** Whether the capabilities of a host or a server declare the tasks of 2026-07-28. */
export const declaresTasks = (capabilities: Capabilities): boolean => extensionsOf(capabilities)?.[TASKS] !== undefined

/** The same capabilities with tasks. */
export const withTasks = (capabilities: Capabilities): Capabilities => ({
  ...capabilities,
  extensions: { ...extensionsOf(capabilities), [TASKS]: {} },
})

/** The same capabilities without tasks. */
export const withoutTasks = (capabilities: Capabilities): Capabilities => {
  if (!declaresTasks(capabilities)) return capabilities
  const others = Object.entries(extensionsOf(capabilities) ?? {}).filter(([name]) => name !== TASKS)
  return { ...capabilities, extensions: Object.fromEntries(others) }
}

/** Whether a legacy server runs `tools/call` as a task on request. */
export const runsToolsAsTasks = ({ tasks }: Capabilities): boolean =>
  memberOf(memberOf(memberOf(tasks, 'requests'), 'tools'), 'call') !== undefined

const TERMINAL: ReadonlySet<string | undefined> = new Set(['completed', 'failed', 'cancelled'])

/** Whether the status of a task is final. */
export const isTerminal = (status: string | undefined): boolean => TERMINAL.has(status)

const extensionsOf = ({ extensions }: Capabilities): Capabilities | undefined => jsonObject(extensions)
