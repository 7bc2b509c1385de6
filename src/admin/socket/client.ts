/** Client of the admin socket: a running process of the same configuration, for the command line. */
import { readdir } from 'node:fs/promises'
import type { IncomingMessage } from 'node:http'
import { join } from 'node:path'
import type { Duplex } from 'node:stream'
import { buffer } from 'node:stream/consumers'
import type { SignInEnd } from '../../auth/outbound/sign-ins.ts'
import { VERSION } from '../../version.ts'
import { LineFramer } from '../../wire/framing/lines.ts'
import { Payload } from '../../wire/message/payload.ts'
import type { EndpointPath } from '../../rpc/call.ts'
import { BASIS_FORMAT, decodeBasis } from '../change/basis.ts'
import { nodeHttp } from '../../transport/http1/server/node/node-http.ts'
import type { CallEnd } from '../calls/call-tool.ts'
import type { FeedMessage, FeedSink } from '../calls/calls.ts'
import type { Control, Login, OpenEnd } from '../control.ts'
import { AdminFailure, AdminRefusal } from '../refusal.ts'
import type { HiddenTool } from '../catalog/hidden-tools.ts'
import { isOurs, PIPE } from './socket-location.ts'
import type { SocketLocation } from './socket-location.ts'
import type { FoundTool, ToolRow } from '../catalog/tools.ts'
import type { ConnectGuide } from '../../host/listener-context.ts'
import { asError } from '../../values/as-error.ts'
import { parseOwnJson } from '../../values/own-json.ts'

/** A stopped process (SIGSTOP, a debugger) takes connections and answers none. A busy one answers within seconds. */
const SILENT_MS = 15_000

/**
 * `undefined`: no process of this configuration runs, or its socket cannot be trusted. Rejects with `AdminFailure` if there is one that
 * does not answer. `signal` ends every wait for an answer.
 */
export const connectAdmin = async (
  location: SocketLocation,
  signal?: AbortSignal,
  timeoutMs = SILENT_MS,
): Promise<Control | undefined> =>
  (await isOurs(location)) && (await isAwake(location, signal, timeoutMs)) ? remoteControl(location, signal) : undefined

/** Whether a process answers at the socket. What it answers does not matter. */
const isAwake = ({ path: socketPath }: SocketLocation, signal: AbortSignal | undefined, timeoutMs: number): Promise<boolean> =>
  new Promise((resolve, reject) => {
    const request = nodeHttp().request({ socketPath, path: '/', agent: false, ...(signal && { signal }) }, (response) => {
      response.resume()
      resolve(true)
    })
    const timer = setTimeout(() => {
      reject(new AdminFailure(`the running process has not answered for ${timeoutMs / 1_000} s: it is stopped or stuck`))
      request.destroy()
    }, timeoutMs)
    request.once('close', () => clearTimeout(timer))
    request.once('error', (error) => (signal?.aborted === true ? reject(error) : resolve(false)))
    request.end()
  })

type Query = Readonly<Record<string, string | readonly string[] | undefined>>

interface Asked {
  readonly body?: string | undefined
  readonly signal?: AbortSignal | undefined
}

/** `stop`: ends every request that has no signal of its own. */
const remoteControl = (location: SocketLocation, stop: AbortSignal | undefined): Control => {
  const ask = async <T>(method: string, path: string, query: Query = {}, { body, signal = stop }: Asked = {}): Promise<T> =>
    parseOwnJson((await exchange(location, method, path, query, { body, signal })).toString())
  return {
    calls: (_viewer, query) => ask('GET', '/calls', Object.fromEntries(query)),
    callDetail: (_viewer, id, signal) => ask('GET', `/calls/${id}`, {}, { signal }),
    follow: ({ filter, after, isWhole }, sink, signal) =>
      follow(location, { filter, after: after?.toString(), whole: isWhole ? '1' : undefined }, sink, signal),
    replay: async (_viewer, { id, params, isConfirmed }, signal) => {
      const body = `{"id":${id},"confirm":${isConfirmed}${params === undefined ? '' : `,"params":${params}`}}`
      const answer = await exchange(location, 'POST', '/replay', {}, { body, signal })
      return { ...readEnd(answer), call: Number(Payload.at(answer).raw('call')) }
    },
    stats: (windowMs) => ask('GET', '/stats', { window: `${windowMs}ms` }),
    stderr: async (server, lines) =>
      (await ask<{ lines: readonly string[] }>('GET', '/stderr', { server, lines: String(lines) }).catch(ifGone))?.lines,
    logs: ({ servers, after, sinceMs, count, isWaiting }, signal) => {
      const numbers = { after: String(after), since: String(sinceMs), lines: String(count), wait: String(isWaiting) }
      return ask('GET', '/logs', { server: servers, ...numbers }, { signal })
    },
    metrics: async (isOpenMetrics) => (await ask<{ text: string }>('GET', '/metrics', { open: String(isOpenMetrics) })).text,
    open: async () => (await ask<{ opened?: OpenEnd }>('POST', '/open')).opened,
    status: () => ask('GET', '/status'),
    tools: async (query, toolset) =>
      (await ask<{ tools: readonly ToolRow[] }>('GET', '/tools', { query, toolset }).catch(ifGone))?.tools,
    hiddenTools: async () => (await ask<{ tools: readonly HiddenTool[] }>('GET', '/hidden')).tools,
    offered: (servers, apps) => ask('GET', '/offered', { server: servers, apps: String(apps) }),
    changes: () => ask('GET', '/changes'),
    lint: (hosts) => ask('GET', '/lint', { host: hosts }),
    toolsets: () => ask('GET', '/toolsets'),
    search: async (query, toolset) => (await ask<{ tools?: readonly FoundTool[] }>('GET', '/search', { query, toolset })).tools,
    guides: async (toolset) => (await ask<{ guides?: readonly ConnectGuide[] }>('GET', '/guides', { toolset })).guides,
    history: () => ask('GET', '/history'),
    why: (name, toolset) => ask('GET', '/why', { name, toolset }),
    can: (question) => ask('POST', '/can', {}, { body: question }),
    settings: () => ask('GET', '/settings'),
    plan: () => ask('GET', '/plan'),
    edit: (body) => ask('POST', '/edit', {}, { body }),
    basis: async () => {
      const answer = await ask<Parameters<typeof decodeBasis>[0]>('GET', '/basis').catch(ifUnknown)
      return answer?.format === BASIS_FORMAT && answer.version === VERSION ? decodeBasis(answer) : undefined
    },
    reload: () => ask('POST', '/reload'),
    restart: async (server) => (await ask<{ restarted: boolean }>('POST', '/restart', { server })).restarted,
    approve: async (server, tool) =>
      (await ask<{ approved: readonly string[] }>('POST', '/approve', { server, tool }).catch(ifGone))?.approved,
    login: async (server) => (await ask<{ login?: Login }>('POST', '/login', { server })).login,
    loginEnd: async (server, signal) => (await ask<{ end: SignInEnd }>('GET', '/login', { server }, { signal })).end,
    call: async ({ tool, args, toolset, host }, signal) =>
      readEnd(await exchange(location, 'POST', '/call', { tool, toolset, host }, { body: args, signal })),
  }
}

/** The end of a call; its result stays byte for byte. */
const readEnd = (answer: Buffer): CallEnd => {
  const end = Payload.at(answer)
  const result = end.raw('result')
  if (result === undefined) return parseOwnJson(answer.toString())
  return { kind: 'result', isError: end.value('isError') === true, result }
}

/** All processes of this user with an admin socket, of any configuration, that answer. */
export const connectAll = async ({ folder, uid }: SocketLocation, signal?: AbortSignal): Promise<readonly Control[]> => {
  if (folder === undefined) return []
  const names = await readdir(folder).catch((): string[] => [])
  const locations = names
    .filter((name) => name.endsWith('.sock'))
    .map((name): SocketLocation => ({ path: join(folder, name), folder, uid }))
  const found = await Promise.all(locations.map((location) => connectAdmin(location, signal).catch(ifSilent)))
  return found.filter((control) => control !== undefined)
}

/** A process that starts does not wait for another one longer than this. */
const RELEASE_MS = 5_000

/** Asks a process that serves one host only to release the socket to one that serves any; false: it keeps the socket, or does not answer. */
export const askToRelease = async (location: SocketLocation, timeoutMs = RELEASE_MS): Promise<boolean> => {
  if (!(await isOurs(location))) return false
  const signal = AbortSignal.timeout(timeoutMs)
  const answer = await exchange(location, 'POST', '/release', {}, { signal }).catch(() => undefined)
  return answer !== undefined && parseOwnJson<{ released: boolean }>(answer.toString()).released
}

/**
 * Why there is no pipe: `unknown`: no such endpoint; `stopping`: the process ends; `none`: no process accepts hosts; `silent`: there is
 * a process, and it does not answer.
 */
export type NoPipe = 'unknown' | 'stopping' | 'none' | 'silent'

/** A pipe to the running process, with the messages of `wire/protocol/relay`. */
export const openPipe = async (
  location: SocketLocation,
  { server, toolset }: EndpointPath,
  timeoutMs = SILENT_MS,
): Promise<Duplex | NoPipe> => {
  if (!(await isOurs(location))) return 'none'
  const query = queryOf({ relay: '1', server, toolset })
  return new Promise((resolve) => {
    const request = nodeHttp().request({
      socketPath: location.path,
      path: `/pipe?${query}`,
      headers: { Connection: 'Upgrade', Upgrade: PIPE },
    })
    const timer = setTimeout(() => {
      resolve('silent')
      request.destroy()
    }, timeoutMs)
    request.once('close', () => clearTimeout(timer))
    request.once('upgrade', (_response, socket, head) => {
      clearTimeout(timer)
      if (head.length > 0) socket.unshift(head)
      resolve(socket)
    })
    request.once('response', (response) => {
      response.resume()
      resolve(NO_PIPE[response.statusCode ?? 0] ?? 'none')
    })
    request.once('error', () => resolve('none'))
    request.end()
  })
}

/** By HTTP status. */
const NO_PIPE: Readonly<Record<number, NoPipe>> = { 404: 'unknown', 503: 'stopping' }

const queryOf = (query: Query): string =>
  new URLSearchParams(
    Object.entries(query).flatMap(([name, value]) => [value ?? []].flat().map((one): [string, string] => [name, one])),
  ).toString()

const exchange = (
  { path: socketPath }: SocketLocation,
  method: string,
  path: string,
  query: Query,
  { body = '', signal }: Asked,
): Promise<Buffer> =>
  new Promise((resolve, reject) => {
    const target = `${path}?${queryOf(query)}`
    const fail = (error: unknown): void => {
      const isOurs = error instanceof AdminRefusal || error instanceof AdminFailure || signal?.aborted === true
      reject(isOurs ? error : failureOf(error))
    }
    const request = nodeHttp().request(
      { socketPath, method, path: target, agent: false, ...(signal && { signal }) },
      (response) => {
        void collect(response).then(resolve, fail)
      },
    )
    request.once('error', fail)
    request.end(body)
  })

/** Of a request without an answer. */
const failureOf = (error: unknown): AdminFailure => {
  const { code, message } = asError(error)
  return new AdminFailure(`the running process has ended, or does not answer (${code ?? message})`, error)
}

/** Reads lines of JSON, each a message of the feed. Rejects with `AdminRefusal` or `AdminFailure`. */
const follow = ({ path: socketPath }: SocketLocation, query: Query, sink: FeedSink, signal: AbortSignal): Promise<void> =>
  new Promise((resolve, reject) => {
    const path = `/feed?${queryOf(query)}`
    const request = nodeHttp().request({ socketPath, path, agent: false, signal }, (response) => {
      if (response.statusCode !== 200) return void collect(response).then(() => resolve(), reject)
      // Not `node:readline`, whose lines also end at U+2028. A line that is not complete is dropped.
      const send = (line: Buffer): void => sink.send(parseOwnJson<FeedMessage>(line.toString()))
      const lines = new LineFramer({ line: send, overflow: () => {}, discarded: () => {} }, { maxBytes: Infinity })
      response.on('data', (chunk: Buffer) => {
        lines.push(chunk)
        if (!sink.isStalled || sink.drained === undefined) return
        response.pause()
        void sink.drained().finally(() => response.resume())
      })
      response.once('close', resolve)
      response.on('error', () => resolve())
    })
    request.once('error', (error) => (signal.aborted ? resolve() : reject(failureOf(error))))
    request.end()
  })

const ifGone = (error: unknown): undefined => {
  if (!(error instanceof AdminRefusal && error.code === 'gone')) throw error
}

/** The running process does not know the request: it has another version. */
class UnknownRequest extends AdminFailure {}

const ifSilent = (error: unknown): undefined => {
  if (!(error instanceof AdminFailure)) throw error
}

const ifUnknown = (error: unknown): undefined => {
  if (!(error instanceof UnknownRequest)) throw error
}

const collect = async (response: IncomingMessage): Promise<Buffer> => {
  const body = await buffer(response)
  const refusal = refusalIn(response.statusCode ?? 0, body.toString())
  if (refusal !== undefined) throw refusal
  if (response.statusCode === 404) throw new UnknownRequest('the running process is of another version, and cannot do this')
  if (response.statusCode !== 200) throw new AdminFailure(`the running process answered ${response.statusCode}`)
  return body
}

/** The refusal in an answer. */
const refusalIn = (status: number, text: string): AdminRefusal | undefined => {
  if (status < 400 || !text.startsWith('{"error":')) return undefined
  const { code, message, at } = parseOwnJson<{ error: { code: string; message: string; at?: number } }>(text).error
  return new AdminRefusal(status, code, message, at)
}
