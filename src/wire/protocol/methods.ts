/** The table of methods of hosts: their eras, and how they are routed. A new method is a new row. */
import type { Era } from './revisions.ts'

export interface MethodRow {
  readonly eras: readonly Era[]
  /**
   * `list`: merged over all servers. `forward`: sent to the server that owns the target. `task`: sent to the server that the task id
   * names. `gateway`: answered by the gateway, in some cases after requests to servers. `listener`: answered there; never becomes a call.
   */
  readonly handling: 'list' | 'forward' | 'task' | 'gateway' | 'listener'
  /** The member of `params` that names the target. */
  readonly field?: 'name' | 'uri' | 'ref' | 'taskId'
  /** Modern HTTP requests repeat the target in `Mcp-Name` ([2026-07-28 basic/transports/streamable-http]). */
  readonly hasNameHeader?: boolean
  /** The server may ask for input, in the modern era by `input_required` ([2026-07-28 basic/patterns/mrtr], Supported Requests). */
  readonly mayAskInput?: boolean
  /** A complete result has `ttlMs` and `cacheScope` ([2026-07-28 server/utilities/caching]). */
  readonly cacheable?: boolean
}

const BOTH: readonly Era[] = ['legacy', 'modern']
const LEGACY: readonly Era[] = ['legacy']
const MODERN: readonly Era[] = ['modern']

/** By method. Cast: the object has no prototype, so that `METHODS['constructor']` is `undefined`. */
export const METHODS: Readonly<Record<string, MethodRow>> = Object.assign(Object.create(null) as Record<string, MethodRow>, {
  initialize: { eras: LEGACY, handling: 'listener' },
  'server/discover': { eras: MODERN, handling: 'listener', cacheable: true },
  ping: { eras: LEGACY, handling: 'listener' },
  'subscriptions/listen': { eras: MODERN, handling: 'listener' },
  'tools/list': { eras: BOTH, handling: 'list', cacheable: true },
  'resources/list': { eras: BOTH, handling: 'list', cacheable: true },
  'resources/templates/list': { eras: BOTH, handling: 'list', cacheable: true },
  'prompts/list': { eras: BOTH, handling: 'list', cacheable: true },
  'tools/call': { eras: BOTH, handling: 'forward', field: 'name', hasNameHeader: true, mayAskInput: true },
  'resources/read': { eras: BOTH, handling: 'forward', field: 'uri', hasNameHeader: true, mayAskInput: true, cacheable: true },
  'prompts/get': { eras: BOTH, handling: 'forward', field: 'name', hasNameHeader: true, mayAskInput: true },
  'completion/complete': { eras: BOTH, handling: 'forward', field: 'ref' },
  'tasks/get': { eras: BOTH, handling: 'task', field: 'taskId', hasNameHeader: true },
  'tasks/update': { eras: MODERN, handling: 'task', field: 'taskId', hasNameHeader: true },
  'tasks/cancel': { eras: BOTH, handling: 'task', field: 'taskId', hasNameHeader: true },
  'tasks/result': { eras: LEGACY, handling: 'task', field: 'taskId', mayAskInput: true },
  'resources/subscribe': { eras: LEGACY, handling: 'gateway', field: 'uri' },
  'resources/unsubscribe': { eras: LEGACY, handling: 'gateway', field: 'uri' },
  'logging/setLevel': { eras: LEGACY, handling: 'gateway' },
} satisfies Record<string, MethodRow>)

/** The row of a method that `era` defines. */
export const methodRow = (method: string, era: Era): MethodRow | undefined => {
  const row = METHODS[method]
  return row?.eras.includes(era) ? row : undefined
}

/** Supported only between legacy peers at a bridge: elsewhere its answer would have to list the tasks of several servers. */
export const TASKS_LIST = 'tasks/list'

/** Whether any revision defines the method as a request to servers. */
export const isServerMethod = (method: string): boolean => method === TASKS_LIST || METHODS[method] !== undefined

/** Whether only revisions before 2026-07-28 define the method. */
export const isOfLegacyOnly = (method: string): boolean =>
  method === TASKS_LIST || (METHODS[method] !== undefined && !METHODS[method].eras.includes('modern'))

/** Whether only 2026-07-28 defines the method. */
export const isOfModernOnly = (method: string): boolean => METHODS[method]?.eras.includes('legacy') === false

/** The capability that a server must have for a method with a target; `undefined`: no capability is needed. */
export const capabilityOf = (method: string): string | undefined => {
  if (METHODS[method]?.handling !== 'forward') return undefined
  return method === 'completion/complete' ? 'completions' : method.split('/')[0]
}

const OWN_NOTIFICATIONS =
  /^notifications\/(?:initialized|cancelled|progress|message|tasks|tasks\/status|elicitation\/complete|subscriptions\/acknowledged|(?:(?:tools|resources|prompts|roots)\/list_changed)|resources\/updated)$/

/** Whether no revision defines the notification. */
export const isVendorNotification = (method: string): boolean => !OWN_NOTIFICATIONS.test(method)

/** The lists that have a `list_changed` notification; templates change with resources. */
export const CHANGED_LISTS = ['tools', 'prompts', 'resources'] as const
export type ChangedList = (typeof CHANGED_LISTS)[number]
/** The method that notifies of the list. */
export const listChangedMethod = (list: ChangedList): string => `notifications/${list}/list_changed`
/** The changed list by that method. */
export const LIST_CHANGED: ReadonlyMap<string, ChangedList> = new Map(
  CHANGED_LISTS.map((list) => [listChangedMethod(list), list]),
)

export const LOG_LEVELS = ['debug', 'info', 'notice', 'warning', 'error', 'critical', 'alert', 'emergency'] as const
export type LogLevel = (typeof LOG_LEVELS)[number]
// Cast: `includes` takes log levels only.
export const isLogLevel = (text: unknown): text is LogLevel => LOG_LEVELS.includes(text as LogLevel)
/** Whether `level` is at least as severe as `minimum`. */
export const reaches = (level: LogLevel, minimum: LogLevel): boolean => LOG_LEVELS.indexOf(level) >= LOG_LEVELS.indexOf(minimum)
