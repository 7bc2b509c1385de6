/** Translates tasks of 2025-11-25 to the form of the tasks extension and back: the same members under other names (BRIDGING 3.17). */
import { META } from '../wire/protocol/meta.ts'
import { Draft, join, Payload } from '../wire/message/payload.ts'

type Names = ReadonlyMap<string, string>

const MODERN_NAMES: Names = new Map([
  ['ttl', 'ttlMs'],
  ['pollInterval', 'pollIntervalMs'],
])
const LEGACY_NAMES: Names = new Map([...MODERN_NAMES].map(([legacy, modern]) => [modern, legacy]))
/** Longest time that a task is stored, also one without a lifetime. */
const MAX_STORED_MS = 24 * 3_600_000
/** Members of the result that do not belong to the task. */
const OF_RESULT: ReadonlySet<string> = new Set(['_meta', 'resultType'])

/** How long a task is stored. `ttlMs`: from its server. */
export const storedMs = (ttlMs: unknown): number => (typeof ttlMs === 'number' ? Math.min(ttlMs, MAX_STORED_MS) : MAX_STORED_MS)

/** A legacy task (`tasks/get`, `notifications/tasks/status`) in the modern form; without a lifetime it is unlimited. */
export const modernTask = (task: Payload): Draft => {
  const draft = renamed(task, MODERN_NAMES)
  if (!draft.has('ttlMs')) draft.set('ttlMs', 'null')
  return draft
}

/** A legacy `CreateTaskResult`, `{ task, _meta }`, in the flat modern form; `undefined`: it is another result. */
export const modernCreation = (result: Payload): Payload | undefined => {
  const task = result.object('task')
  if (task?.text('taskId') === undefined) return undefined
  const draft = modernTask(task)
  addMeta(draft, result)
  return Payload.at(join(draft.parts()))
}

/** Adds the `_meta` of a legacy result about a task to its modern form (B017), without the id of the task. */
export const addMeta = (draft: Draft, result: Payload): void => {
  unrelate(result)
  const meta = result.settled().raw('_meta')
  if (meta !== undefined) draft.set('_meta', meta)
}

/** A modern `CreateTaskResult` in the form of 2025-11-25. */
export const legacyCreation = (result: Payload): Draft => {
  const settled = Payload.at(join(result.parts()))
  const draft = new Draft()
  draft.set('task', renamed(settled, LEGACY_NAMES).parts())
  const meta = settled.raw('_meta')
  if (meta !== undefined) draft.set('_meta', meta)
  return draft
}

/** Id of the task that a message of 2025-11-25 belongs to, as its sender knows it. */
export const relatedTask = (params: Payload | undefined): string | undefined =>
  params?.object('_meta')?.object(META.relatedTask)?.text('taskId')

/** Adds the id of the task that a message belongs to. */
export const relateTo = (params: Payload, taskId: string): void =>
  params.setIn('_meta', META.relatedTask, JSON.stringify({ taskId }))

/** Removes that id: the tasks extension has no such member. */
export const unrelate = (params: Payload): void => {
  const meta = params.object('_meta')
  if (meta?.members.length === 1 && meta.has(META.relatedTask)) params.delete('_meta')
  else meta?.delete(META.relatedTask)
}

const renamed = (task: Payload, names: Names): Draft => {
  const draft = new Draft()
  for (const { key, start, end } of task.members)
    if (!OF_RESULT.has(key)) draft.set(names.get(key) ?? key, task.bytes.subarray(start, end))
  return draft
}
