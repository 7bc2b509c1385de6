/** Names shared by both generations of tasks ([ext tasks]; [2025-11-25 basic/utilities/tasks]; BRIDGING 3.17). */
import { jsonObject, memberOf } from '../../values/json-object.ts'

/** The extension of 2026-07-28, under `extensions` of either side's capabilities. */
export const TASKS = 'io.modelcontextprotocol/tasks'

type Capabilities = Readonly<Record<string, unknown>>

/** Whether capabilities, a host's or a server's, declare the extension. */
export const declaresTasks = (capabilities: Capabilities): boolean => extensionsOf(capabilities)?.[TASKS] !== undefined

/** The same capabilities with the extension. */
export const withTasks = (capabilities: Capabilities): Capabilities => ({
  ...capabilities,
  extensions: { ...extensionsOf(capabilities), [TASKS]: {} },
})

/** The same capabilities without it. */
export const withoutTasks = (capabilities: Capabilities): Capabilities => {
  if (!declaresTasks(capabilities)) return capabilities
  const others = Object.entries(extensionsOf(capabilities) ?? {}).filter(([name]) => name !== TASKS)
  return { ...capabilities, extensions: Object.fromEntries(others) }
}

/** Whether a legacy server lets `tools/call` be made a task. */
export const runsToolsAsTasks = ({ tasks }: Capabilities): boolean =>
  memberOf(memberOf(memberOf(tasks, 'requests'), 'tools'), 'call') !== undefined

const TERMINAL: ReadonlySet<string | undefined> = new Set(['completed', 'failed', 'cancelled'])

/** Whether the status is final. */
export const isTerminal = (status: string | undefined): boolean => TERMINAL.has(status)

const extensionsOf = ({ extensions }: Capabilities): Capabilities | undefined => jsonObject(extensions)
