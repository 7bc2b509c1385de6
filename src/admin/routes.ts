/**
 * The requests to a running process: one table for the admin socket and for the API of the admin listener. `control.ts` implements them.
 */
import { HOST_LIMITS } from '../catalog/lint/host-limits.ts'
import { parseDuration } from '../config/schema/units.ts'
import type { Viewer } from '../observe/viewer.ts'
import { encodeBasis } from './change/basis.ts'
import { countOf } from './calls/calls.ts'
import type { Control } from './control.ts'
import { AdminRefusal } from './refusal.ts'
import { readReplay } from './calls/replay.ts'
import { logQueryOf } from './state/logs.ts'
import { DEFAULT_WINDOW_MS } from './calls/stats.ts'
import { ownValue } from '../values/own-value.ts'

/** One request, from the socket or the listener. */
export interface AdminRequest {
  readonly query: URLSearchParams
  readonly body: string
  readonly control: Control
  /** Aborts when the caller disconnects. */
  readonly signal: AbortSignal
  readonly viewer: Viewer
  /** The number in the path, if there is one. */
  readonly id: number
}

/**
 * Who may use a route. `everyone`: every authenticated caller, for its own data; `read` and `write`: operators, `write` only if
 * `ui.write` allows it; `socket`: the command line only.
 */
export type Access = 'everyone' | 'read' | 'write' | 'socket'

export interface Route {
  readonly access: Access
  /** JSON as bytes, or a value to be encoded. */
  readonly answer: (request: AdminRequest) => Promise<Buffer | object>
}

const read = (answer: Route['answer']): Route => ({ access: 'read', answer })
const everyone = (answer: Route['answer']): Route => ({ access: 'everyone', answer })
const write = (answer: Route['answer']): Route => ({ access: 'write', answer })

/** By method and path below `/api`, or at the socket's root. */
const ROUTES: Readonly<Record<string, Route>> = {
  'GET /calls': everyone(({ control, viewer, query }) => control.calls(viewer, query)),
  'GET /calls/ID': everyone(({ control, viewer, id }) => control.callDetail(viewer, id)),
  'GET /stats': read(({ control, query }) => control.stats(windowOf(query))),
  'GET /stderr': read(async ({ control, query }) => {
    const server = query.get('server') ?? ''
    const lines = await control.stderr(server, Math.min(countOf(query, 'lines') ?? 200, MAX_LINES))
    if (lines === undefined) throw new AdminRefusal(404, 'gone', `there is no server ${JSON.stringify(server)}`)
    return { lines }
  }),
  'GET /logs': read(({ control, query, signal }) => control.logs(logQueryOf(query), signal)),
  'GET /status': read(({ control }) => control.status()),
  'GET /tools': read(async ({ query, control }) => {
    const toolset = query.get('toolset') ?? undefined
    const tools = await control.tools(query.get('query') ?? '', toolset)
    if (tools === undefined) throw new AdminRefusal(404, 'gone', `there is no toolset ${JSON.stringify(toolset ?? '')}`)
    return { tools }
  }),
  'GET /hidden': read(async ({ control }) => ({ tools: await control.hiddenTools() })),
  'GET /offered': read(({ query, control }) => control.offered(query.getAll('server'), query.get('apps') === 'true')),
  'GET /changes': read(({ control }) => control.changes()),
  'GET /lint': read(({ query, control }) =>
    control.lint(query.getAll('host').filter((host) => Object.hasOwn(HOST_LIMITS, host))),
  ),
  'GET /toolsets': read(({ control }) => control.toolsets()),
  'GET /search': read(async ({ query, control }) => {
    const toolset = query.get('toolset') ?? undefined
    return { tools: found(await control.search(query.get('query') ?? '', toolset), toolset) }
  }),
  'GET /guides': read(async ({ query, control }) => {
    const toolset = query.get('toolset') ?? undefined
    return { guides: found(await control.guides(toolset), toolset) }
  }),
  'GET /history': read(({ control }) => control.history()),
  'GET /why': read(({ query, control }) => control.why(query.get('name') ?? '', query.get('toolset') ?? undefined)),
  'POST /can': read(({ body, control }) => control.can(body)),
  'GET /settings': read(({ control }) => control.settings()),
  'GET /plan': read(({ control }) => control.plan()),
  'GET /basis': {
    access: 'socket',
    answer: async ({ control }) => {
      const basis = await control.basis()
      return basis === undefined ? {} : encodeBasis(basis)
    },
  },
  'GET /metrics': {
    access: 'socket',
    answer: async ({ control, query }) => ({ text: await control.metrics(query.get('open') === 'true') }),
  },
  'POST /open': { access: 'socket', answer: async ({ control }) => ({ opened: await control.open() }) },
  'POST /edit': write(({ body, control }) => control.edit(body)),
  'POST /reload': write(({ control }) => control.reload()),
  'POST /restart': write(async ({ query, control }) => ({ restarted: await control.restart(query.get('server') ?? '') })),
  'POST /login': write(async ({ query, control }) => ({ login: await control.login(query.get('server') ?? '') })),
  'GET /login': write(async ({ query, control, signal }) => ({ end: await control.loginEnd(query.get('server') ?? '', signal) })),
  'POST /approve': write(async ({ query, control }) => {
    const server = query.get('server') ?? ''
    const approved = await control.approve(server, query.get('tool') ?? undefined)
    if (approved === undefined) throw new AdminRefusal(404, 'gone', `there is no server ${JSON.stringify(server)}`)
    return { approved }
  }),
  'POST /call': write(async ({ query, body, control, signal }) => {
    const [toolset, host] = ['toolset', 'host'].map((name) => query.get(name) ?? undefined)
    const end = await control.call({ tool: query.get('tool') ?? '', args: body, toolset, host }, signal)
    return end.kind === 'result' ? resultOf('', end) : end
  }),
  'POST /replay': write(async ({ viewer, body, control, signal }) => {
    const end = await control.replay(viewer, readReplay(body), signal)
    return end.kind === 'result' ? resultOf(`"call":${end.call},`, end) : end
  }),
}

/** The route of a method and a path, and the number in the path; `undefined`: there is none. */
export const findRoute = (method: string, path: string): { readonly route: Route; readonly id: number } | undefined => {
  const [, before = path, digits] = /^(.*\/)(\d{1,15})$/.exec(path) ?? []
  const name = `${method} ${digits === undefined ? path : `${before}ID`}`
  const route = ownValue(ROUTES, name)
  return route && { route, id: Number(digits ?? 0) }
}

/** Throws `AdminRefusal` where there is no such toolset. */
const found = <T>(answer: T | undefined, toolset: string | undefined): T => {
  if (answer === undefined)
    throw new AdminRefusal(404, 'gone', `there is no toolset ${JSON.stringify(toolset ?? '')} with an address`)
  return answer
}

const MAX_LINES = 1_000

/** The result, byte for byte, in an object of ours. */
const resultOf = (more: string, { isError, result }: { readonly isError: boolean; readonly result: Buffer }): Buffer =>
  Buffer.concat([Buffer.from(`{"kind":"result",${more}"isError":${isError},"result":`), result, Buffer.from('}')])

/** `5m`. */
const windowOf = (query: URLSearchParams): number => {
  const text = query.get('window')
  if (text === null) return DEFAULT_WINDOW_MS
  const windowMs = parseDuration(text)
  if (windowMs) return windowMs
  throw new AdminRefusal(400, 'query', `window must be a duration such as 5m, got ${JSON.stringify(text)}`)
}
