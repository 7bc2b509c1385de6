/** The capabilities of a server at a bridge, in the form of the host's era; only tasks differ (BRIDGING 3.21). */
import { isJsonObject } from '../../values/json-object.ts'
import { isAtLeast, isModernRevision } from '../../wire/protocol/revisions.ts'
import type { Revision } from '../../wire/protocol/revisions.ts'
import { declaresTasks, TASKS } from '../../wire/protocol/extensions.ts'
import { TASKS_CAPABILITY } from './legacy-host.ts'

type Capabilities = Readonly<Record<string, unknown>>

/** `tasks`: whether tasks are declared to hosts. */
export const bridgedCapabilities = (capabilities: Capabilities, host: Revision, tasks: boolean): Capabilities => {
  const { tasks: ownTasks, extensions, ...rest } = capabilities
  const hasTasks = tasks && (isJsonObject(ownTasks) || declaresTasks(capabilities))
  const isModern = isModernRevision(host)
  const others = Object.entries(isJsonObject(extensions) ? extensions : {}).filter(([name]) => name !== TASKS)
  const all = hasTasks && isModern ? [...others, [TASKS, {}]] : others
  return {
    ...rest,
    ...(hasTasks &&
      !isModern &&
      isAtLeast(host, '2025-11-25') && { tasks: isJsonObject(ownTasks) ? ownTasks : TASKS_CAPABILITY }),
    ...((all.length > 0 || (isJsonObject(extensions) && Object.keys(extensions).length === 0)) && {
      extensions: Object.fromEntries(all),
    }),
  }
}
