/** The table of methods: sender, eras, and the field that routes the method. A new method is a new row. */
import type { Era } from './revisions.ts'

export interface MethodRow {
  readonly eras: readonly Era[]
  /**
   * `list`: merged over all servers. `forward`: sent to the owner of `field`. `task`: sent to the server that the task id names.
   * `gateway`: the gateway answers, in some cases after a request to servers. `listener`: the listener answers; it is never a call.
   */
  readonly way: 'list' | 'forward' | 'task' | 'gateway' | 'listener'
  /** The member of `params` that names the target; mirrored in `Mcp-Name` where `named`. */
  readonly field?: 'name' | 'uri' | 'ref' | 'taskId'
  /** Modern HTTP requests carry `Mcp-Name` for it ([2026-07-28 basic/transports/streamable-http]). */
  readonly named?: boolean
  /** The server may ask for input; in the modern era by `input_required` ([2026-07-28 basic/patterns/mrtr], Supported Requests). */
  readonly mayAskInput?: boolean
  /** Its complete result carries `ttlMs` and `cacheScope` ([2026-07-28 server/utilities/caching]). */
  readonly cacheable?: boolean
}

const BOTH: readonly Era[] = ['legacy', 'modern']
const LEGACY: readonly Era[] = ['legacy']
const MODERN: readonly Era[] = ['modern']

// Cast: an object without prototype.
export const METHODS: Readonly<Record<string, MethodRow>> = Object.assign(Object.create(null) as Record<string, MethodRow>, {
  initialize: { eras: LEGACY, way: 'listener' },
  'server/discover': { eras: MODERN, way: 'listener', cacheable: true },
  ping: { eras: LEGACY, way: 'listener' },
  'subscriptions/listen': { eras: MODERN, way: 'listener' },
  'tools/list': { eras: BOTH, way: 'list', cacheable: true },
  'resources/list': { eras: BOTH, way: 'list', cacheable: true },
  'resources/templates/list': { eras: BOTH, way: 'list', cacheable: true },
  'prompts/list': { eras: BOTH, way: 'list', cacheable: true },
  'tools/call': { eras: BOTH, way: 'forward', field: 'name', named: true, mayAskInput: true },
  'resources/read': { eras: BOTH, way: 'forward', field: 'uri', named: true, mayAskInput: true, cacheable: true },
  'prompts/get': { eras: BOTH, way: 'forward', field: 'name', named: true, mayAskInput: true },
  'completion/complete': { eras: BOTH, way: 'forward', field: 'ref' },
  'tasks/get': { eras: BOTH, way: 'task', field: 'taskId', named: true },
  'tasks/update': { eras: MODERN, way: 'task', field: 'taskId', named: true },
  'tasks/cancel': { eras: BOTH, way: 'task', field: 'taskId', named: true },
  'tasks/result': { eras: LEGACY, way: 'task', field: 'taskId', mayAskInput: true },
  'resources/subscribe': { eras: LEGACY, way: 'gateway', field: 'uri' },
  'resources/unsubscribe': { eras: LEGACY, way: 'gateway', field: 'uri' },
  'logging/setLevel': { eras: LEGACY, way: 'gateway' },
} satisfies Record<string, MethodRow>)

/** The row of a method as far as `era` knows it. */
export const methodRow = (method: string, era: Era): MethodRow | undefined => {
  const row = METHODS[method]
  return row?.eras.includes(era) ? row : undefined
}

/** Offered between legacy peers at a bridge alone: its answer would have to name the tasks of several servers. */
const TASKS_LIST = 'tasks/list'

/** Whether a revision defines the method as one of servers. */
export const isServerMethod = (method: string): boolean => method === TASKS_LIST || METHODS[method] !== undefined

/** Whether revisions before 2026-07-28 define the method, and it does not. */
export const isOfLegacyOnly = (method: string): boolean =>
  method === TASKS_LIST || (METHODS[method] !== undefined && !METHODS[method].eras.includes('modern'))

/** The capability of a server that has the method, which names what it wants; `undefined`: no capability says so. */
export const capabilityOf = (method: string): string | undefined => {
  if (METHODS[method]?.way !== 'forward') return undefined
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
// Cast: `includes` takes nothing else.
export const isLogLevel = (text: unknown): text is LogLevel => LOG_LEVELS.includes(text as LogLevel)
/** Whether `level` is at least as severe as `minimum`. */
export const reaches = (level: LogLevel, minimum: LogLevel): boolean => LOG_LEVELS.indexOf(level) >= LOG_LEVELS.indexOf(minimum)
