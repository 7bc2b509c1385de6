/** The other end of the admin socket: a running process of the same configuration, as the command line sees it. */
import { readdir } from 'node:fs/promises'
import { createInterface } from 'node:readline'
import type { IncomingMessage } from 'node:http'
import { join } from 'node:path'
import type { Duplex } from 'node:stream'
import type { SignInEnd } from '../../auth/oauth/sign-ins.ts'
import { VERSION } from '../../version.ts'
import { Payload } from '../../wire/message/payload.ts'
import type { EndpointPath } from '../../rpc/call.ts'
import { BASIS_FORMAT, decodeBasis } from '../change/basis.ts'
import { isAnswered } from '../../transport/http1/server/connection/listen-address.ts'
import { nodeHttp } from '../../transport/http1/server/node/node-http.ts'
import type { CanEnd } from '../explain/can.ts'
import type { CallEnd } from '../calls/call-tool.ts'
import type { FeedMessage, FeedSink } from '../calls/calls.ts'
import type { LogPage } from '../state/logs.ts'
import type { Control, Login, OpenEnd } from '../control.ts'
import { AdminRefusal } from '../refusal.ts'
import type { ReplayEnd } from '../calls/replay.ts'
import type { EditEnd } from '../change/edit.ts'
import type { HiddenTool } from '../catalog/hidden-tools.ts'
import { isOurs, PIPE } from './place.ts'
import type { Place } from './place.ts'
import type { FoundTool, ToolRow } from '../catalog/tools.ts'
import type { ConnectGuide } from '../../host/listener-context.ts'
import { parseOwnJson } from '../../values/own-json.ts'

/** `undefined`: no process of this configuration runs, or its socket cannot be trusted. */
export const connectAdmin = async (place: Place): Promise<Control | undefined> =>
  (await isOurs(place)) && (await isAnswered(place.path)) ? remoteControl(place) : undefined

type Query = Record<string, string> | [key: string, value: string][]

const remoteControl = (place: Place): Control => {
  const ask = async <T>(method: string, path: string, query: Query = {}): Promise<T> =>
    parseOwnJson((await exchange(place, method, path, query)).toString())
  return {
    calls: (_viewer, query) => ask('GET', '/calls', [...query]),
    callDetail: (_viewer, id) => ask('GET', `/calls/${id}`),
    follow: ({ filter, after, isWhole }, sink, signal) =>
      follow(
        place,
        { filter, ...(after !== undefined && { after: String(after) }), ...(isWhole && { whole: '1' }) },
        sink,
        signal,
      ),
    replay: async (_viewer, { id, params, isConfirmed }, signal) => {
      const body = `{"id":${id},"confirm":${isConfirmed}${params === undefined ? '' : `,"params":${params}`}}`
      const answer = Payload.at(await exchange(place, 'POST', '/replay', {}, body, signal))
      const result = answer.raw('result')
      if (result === undefined) return parseOwnJson<ReplayEnd>(answer.bytes.toString())
      const { call } = parseOwnJson<{ call: number }>(answer.bytes.toString())
      return { kind: 'result', isError: answer.value('isError') === true, result, call }
    },
    stats: (windowMs) => ask('GET', '/stats', { window: `${windowMs}ms` }),
    stderr: async (server, lines) =>
      (await ask<{ lines: readonly string[] }>('GET', '/stderr', { server, lines: String(lines) }).catch(ifGone))?.lines,
    logs: async ({ servers, after, sinceMs, count, isWaiting }, signal) => {
      const numbers = { after: String(after), since: String(sinceMs), lines: String(count), wait: String(isWaiting) }
      const query = [...servers.map((server): [string, string] => ['server', server]), ...Object.entries(numbers)]
      return parseOwnJson<LogPage>((await exchange(place, 'GET', '/logs', query, '', signal)).toString())
    },
    metrics: async (isOpenMetrics) => (await ask<{ text: string }>('GET', '/metrics', { open: String(isOpenMetrics) })).text,
    open: async () => (await ask<{ opened?: OpenEnd }>('POST', '/open')).opened,
    status: () => ask('GET', '/status'),
    tools: async (query, toolset) =>
      (await ask<{ tools?: readonly ToolRow[] }>('GET', '/tools', { query, ...(toolset !== undefined && { toolset }) })).tools,
    hiddenTools: async () => (await ask<{ tools: readonly HiddenTool[] }>('GET', '/hidden')).tools,
    offered: (servers, apps) =>
      ask('GET', '/offered', [...servers.map((server): [string, string] => ['server', server]), ['apps', String(apps)]]),
    changes: () => ask('GET', '/changes'),
    lint: (hosts) =>
      ask(
        'GET',
        '/lint',
        hosts.map((host): [string, string] => ['host', host]),
      ),
    toolsets: () => ask('GET', '/toolsets'),
    search: async (query, toolset) =>
      (await ask<{ tools?: readonly FoundTool[] }>('GET', '/search', { query, ...(toolset !== undefined && { toolset }) })).tools,
    guides: async (toolset) =>
      (await ask<{ guides?: readonly ConnectGuide[] }>('GET', '/guides', toolset === undefined ? {} : { toolset })).guides,
    history: () => ask('GET', '/history'),
    why: (name, toolset) => ask('GET', '/why', { name, ...(toolset !== undefined && { toolset }) }),
    can: async (question) => parseOwnJson<CanEnd>((await exchange(place, 'POST', '/can', {}, question)).toString()),
    settings: () => ask('GET', '/settings'),
    plan: () => ask('GET', '/plan'),
    edit: async (body) => parseOwnJson<EditEnd>((await exchange(place, 'POST', '/edit', {}, body)).toString()),
    basis: async () => {
      const answer = await ask<Parameters<typeof decodeBasis>[0]>('GET', '/basis').catch(ifUnknown)
      return answer?.format === BASIS_FORMAT && answer.version === VERSION ? decodeBasis(answer) : undefined
    },
    reload: () => ask('POST', '/reload'),
    restart: async (server) => (await ask<{ restarted: boolean }>('POST', '/restart', { server })).restarted,
    approve: async (server, tool) =>
      (await ask<{ approved?: readonly string[] }>('POST', '/approve', { server, ...(tool !== undefined && { tool }) })).approved,
    login: async (server) => (await ask<{ login?: Login }>('POST', '/login', { server })).login,
    loginEnd: async (server, signal) => {
      const answer = exchange(place, 'GET', '/login', { server }, '', signal)
      return parseOwnJson<{ end: SignInEnd }>((await answer).toString()).end
    },
    call: async ({ tool, args, toolset, host }, signal) => {
      const query = { tool, ...(toolset !== undefined && { toolset }), ...(host !== undefined && { host }) }
      const answer = Payload.at(await exchange(place, 'POST', '/call', query, args, signal))
      const result = answer.raw('result')
      if (result === undefined) return parseOwnJson<CallEnd>(answer.bytes.toString())
      return { kind: 'result', isError: answer.value('isError') === true, result }
    },
  }
}

/** All processes of this user that can be asked, of whatever configuration. */
export const connectAll = async ({ folder, uid }: Place): Promise<readonly Control[]> => {
  if (folder === undefined) return []
  const names = await readdir(folder).catch((): string[] => [])
  const places = names.filter((name) => name.endsWith('.sock')).map((name): Place => ({ path: join(folder, name), folder, uid }))
  const found = await Promise.all(places.map((place) => connectAdmin(place)))
  return found.filter((control) => control !== undefined)
}

/** Asks a process that serves one host only to leave the socket to one that serves any; false: it needs it itself. */
export const askToRelease = async (place: Place): Promise<boolean> => {
  const answer = (await isOurs(place)) ? await exchange(place, 'POST', '/release', {}).catch(() => undefined) : undefined
  return answer !== undefined && parseOwnJson<{ released: boolean }>(answer.toString()).released
}

/** Why there is no pipe: `unknown`: no such endpoint; `stopping`: the process ends, and another may follow; `none` that takes hosts. */
export type NoPipe = 'unknown' | 'stopping' | 'none'

/** A pipe to the running process, on which the words of `wire/protocol/relay` are understood. */
export const openPipe = async (place: Place, { server, toolset }: EndpointPath): Promise<Duplex | NoPipe> => {
  if (!(await isOurs(place))) return 'none'
  const named = { relay: '1', ...(server !== undefined && { server }), ...(toolset !== undefined && { toolset }) }
  const query = `?${new URLSearchParams(named).toString()}`
  return new Promise((resolve) => {
    const asked = nodeHttp().request({
      socketPath: place.path,
      path: `/pipe${query}`,
      headers: { Connection: 'Upgrade', Upgrade: PIPE },
    })
    asked.once('upgrade', (_response, socket, head) => {
      if (head.length > 0) socket.unshift(head)
      resolve(socket)
    })
    asked.once('response', (response) => {
      response.resume()
      resolve(NO_PIPE[response.statusCode ?? 0] ?? 'none')
    })
    asked.once('error', () => resolve('none'))
    asked.end()
  })
}

/** By the status that says so. */
const NO_PIPE: Readonly<Record<number, NoPipe>> = { 404: 'unknown', 503: 'stopping' }

const exchange = (
  { path: socketPath }: Place,
  method: string,
  path: string,
  query: Query,
  body = '',
  signal?: AbortSignal,
): Promise<Buffer> =>
  new Promise((resolve, reject) => {
    const target = `${path}?${new URLSearchParams(query).toString()}`
    const asked = nodeHttp().request(
      { socketPath, method, path: target, agent: false, ...(signal && { signal }) },
      (response) => {
        void collect(response).then(resolve, reject)
      },
    )
    asked.once('error', reject)
    asked.end(body)
  })

/** Lines of JSON, each a message of the feed. Rejects with `AdminRefusal`. */
const follow = ({ path: socketPath }: Place, query: Record<string, string>, sink: FeedSink, signal: AbortSignal): Promise<void> =>
  new Promise((resolve, reject) => {
    const path = `/feed?${new URLSearchParams(query).toString()}`
    const asked = nodeHttp().request({ socketPath, path, agent: false, signal }, (response) => {
      if (response.statusCode !== 200) return void collect(response).then(() => resolve(), reject)
      // What breaks the answer is told by the lines' reader as well.
      createInterface({ input: response })
        .on('line', (line) => sink.send(parseOwnJson<FeedMessage>(line)))
        .on('error', () => resolve())
      response.once('close', resolve)
      response.on('error', () => resolve())
    })
    asked.once('error', (error) => (signal.aborted ? resolve() : reject(error)))
    asked.end()
  })

const ifGone = (error: unknown): undefined => {
  if (!(error instanceof AdminRefusal)) throw error
}

/** What the running process does not know how to answer: it is of another version. */
class UnknownRequest extends Error {}

const ifUnknown = (error: unknown): undefined => {
  if (!(error instanceof UnknownRequest)) throw error
}

const collect = async (response: IncomingMessage): Promise<Buffer> => {
  const chunks: Buffer[] = []
  const body: AsyncIterable<Buffer> = response
  for await (const chunk of body) chunks.push(chunk)
  const refusal = refusalIn(response.statusCode ?? 0, Buffer.concat(chunks).toString())
  if (refusal !== undefined) throw refusal
  if (response.statusCode === 404) throw new UnknownRequest('the running process is of another version, and cannot do this')
  if (response.statusCode !== 200) throw new Error(`the running process answered ${response.statusCode}`)
  return Buffer.concat(chunks)
}

/** What the running process refused in words. */
const refusalIn = (status: number, text: string): AdminRefusal | undefined => {
  if (status < 400 || !text.startsWith('{"error":')) return undefined
  const { code, message, at } = parseOwnJson<{ error: { code: string; message: string; at?: number } }>(text).error
  return new AdminRefusal(status, code, message, at)
}
