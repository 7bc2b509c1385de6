/**
 * What a server at a bridge can, in the words of the host's era (BRIDGING 3.21): everything it declares and nothing beside it. Tasks
 * are the one family that the eras declare differently.
 */
import { isAtLeast, isModernRevision } from '../../wire/protocol/revisions.ts'
import type { Revision } from '../../wire/protocol/revisions.ts'
import { declaresTasks, TASKS } from '../../wire/protocol/tasks.ts'
import { TASKS_CAPABILITY } from './legacy-host.ts'

type Capabilities = Readonly<Record<string, unknown>>

/** `tasks`: whether hosts are told of tasks at all. */
export const bridgedCapabilities = (capabilities: Capabilities, host: Revision, tasks: boolean): Capabilities => {
  const { tasks: ownTasks, extensions, ...rest } = capabilities
  const hasTasks = tasks && (isObject(ownTasks) || declaresTasks(capabilities))
  const isModern = isModernRevision(host)
  const others = Object.entries(isObject(extensions) ? extensions : {}).filter(([name]) => name !== TASKS)
  const all = hasTasks && isModern ? [...others, [TASKS, {}]] : others
  return {
    ...rest,
    ...(hasTasks && !isModern && isAtLeast(host, '2025-11-25') && { tasks: isObject(ownTasks) ? ownTasks : TASKS_CAPABILITY }),
    ...((all.length > 0 || (isObject(extensions) && Object.keys(extensions).length === 0)) && {
      extensions: Object.fromEntries(all),
    }),
  }
}

const isObject = (value: unknown): value is Capabilities => typeof value === 'object' && value !== null
