/**
 * Discovery of tools in large sets (`toolsets.<name>.discovery`): hosts are listed three meta tools. The outermost layer replaces a call
 * of `gateway__call_tool` by the call of the named tool, so that filters, limits, questions and the audit apply to that tool. Its
 * arguments are relayed unchanged, and it can do nothing that a plain call could not. Tools that are for apps alone do not exist here,
 * since models choose ([ext apps], Visibility).
 */
import { CALL_TOOL, DEFAULT_ANSWERS, DESCRIBE_TOOL, isMetaTool, MAX_ANSWERS, SEARCH_TOOLS } from '../catalog/view/meta-tools.ts'
import { findAppTool } from '../catalog/view/apps.ts'
import { findTool } from '../catalog/view/routes.ts'
import { summaryOf } from '../catalog/search/tool-text.ts'
import { NO_HEADERS, toolText } from '../rpc/call.ts'
import type { Call, Caller, Handler, Layer, Outcome } from '../rpc/call.ts'
import { Payload } from '../wire/message/payload.ts'
import type { Parts } from '../wire/message/payload.ts'
import type { Access } from './access.ts'
import type { Feed } from './lists/feed.ts'
import { Searches } from './lists/searches.ts'
import { OPEN_BRACE } from '../wire/json/tokens.ts'

const OPEN = Buffer.from('{')
const COMMA = Buffer.from(',')
const CLOSE = Buffer.from('}')
const ARGUMENTS = Buffer.from('"arguments":')
const OWN_MEMBERS: ReadonlySet<string> = new Set(['name', 'arguments'])

/** Wrong arguments of a meta tool. The message is the tool's result for the model, not a protocol error. */
class Misused extends Error {}

export class Discovery {
  readonly #feed: Feed
  readonly #known: (caller: Caller) => Promise<void>
  readonly #access: Access
  readonly #searches = new Searches()

  /** `known`: waits for the lists of servers that are starting. */
  constructor(feed: Feed, known: (caller: Caller) => Promise<void>, access: Access) {
    this.#access = access
    this.#feed = feed
    this.#known = known
  }

  /** The outermost layer: replaces a call of `gateway__call_tool` by the named call. A malformed one is answered by `answer`. */
  readonly unwrap: Layer = (inner) => (call) => {
    if (call.target !== CALL_TOOL || !this.#isOffered(call)) return inner(call)
    let named = call
    try {
      named = this.#innerCall(call)
    } catch (error) {
      if (!(error instanceof Misused)) throw error
    }
    return inner(named)
  }

  /** The innermost layer: answers calls of meta tools. */
  readonly answer: Layer = (inner) => (call) =>
    isMetaTool(call.target) && this.#isOffered(call) ? this.#answer(call, inner) : inner(call)

  /** Also true while `auto` lists everything, since a host may still use an older list. */
  #isOffered({ method, caller }: Call): boolean {
    return method === 'tools/call' && (this.#feed.viewOf(caller).toolset?.discovery ?? 'full') !== 'full'
  }

  async #answer(call: Call, inner: Handler): Promise<Outcome> {
    try {
      await this.#known(call.caller)
      if (call.target === SEARCH_TOOLS) return toolText(await this.#search(call), false)
      if (call.target === DESCRIBE_TOOL) return toolText(await this.#describe(call), false)
      return await inner(this.#innerCall(call))
    } catch (error) {
      if (error instanceof Misused) return toolText(error.message, true)
      throw error
    }
  }

  async #search(call: Call): Promise<string> {
    const args = argumentsOf(call, ['query', 'limit'])
    const query = args.text('query')
    if (query === undefined || query.trim() === '')
      throw new Misused(`${SEARCH_TOOLS} needs "query": what is to be done, in words`)
    const limit = args.isAbsent('limit') ? DEFAULT_ANSWERS : args.value('limit')
    if (!isAnswerCount(limit)) throw new Misused(`"limit" must be a whole number from 1 to ${MAX_ANSWERS}`)
    const view = this.#feed.viewOf(call.caller)
    const { rows, entries } = view.list('tools')
    const isShown = await this.#access.shown(view, 'tools', call.caller)
    const { appOnly } = view.apps
    const best = await this.#searches.find(view, query, isShown === undefined ? limit + appOnly.size : rows.length)
    const tools: object[] = []
    for (const { at, score } of best) {
      const [row, entry] = [rows[at], entries[at]]
      if (tools.length === limit) break
      if (row === undefined || entry === undefined || appOnly.has(row.entry) || isShown?.(row) === false) continue
      tools.push({ name: row.exposed, server: row.server.displayName, score, description: oneLine(entry) })
    }
    return JSON.stringify({ tools })
  }

  async #describe(call: Call): Promise<string> {
    const name = nameOf(argumentsOf(call, ['name']), DESCRIBE_TOOL)
    const view = this.#feed.viewOf(call.caller)
    const { rows, entries } = view.list('tools')
    const at = rows.findIndex(({ exposed }) => exposed === name)
    const isShown = await this.#access.shown(view, 'tools', call.caller)
    const [row, entry] = [rows[at], entries[at]]
    if (row === undefined || entry === undefined || view.apps.appOnly.has(row.entry) || isShown?.(row) === false)
      throw new Misused(`Unknown tool: ${name}`)
    return entry.toString()
  }

  /** The call of the named tool. Throws `Misused`. */
  #innerCall(call: Call): Call {
    const inner = innerCall(call)
    const name = inner.target ?? ''
    const view = this.#feed.viewOf(call.caller)
    const entry = (findTool(view, name) ?? findAppTool(view, view.apps, name))?.entry
    if (entry !== undefined && view.apps.appOnly.has(entry)) throw new Misused(`Unknown tool: ${name}`)
    return inner
  }
}

/** The call of the named tool: arguments and all other members of the request keep the host's bytes. */
const innerCall = (call: Call): Call => {
  const args = argumentsOf(call, ['name', 'arguments'])
  const name = nameOf(args, CALL_TOOL)
  if (isMetaTool(name)) throw new Misused(`${name} is called by itself, not with ${CALL_TOOL}`)
  const inner = args.raw('arguments')
  if (!args.isAbsent('arguments') && inner?.[0] !== OPEN_BRACE) throw new Misused(`"arguments" of ${CALL_TOOL} must be an object`)
  const { bytes, members } = call.params
  const others = members.filter(({ key }) => !OWN_MEMBERS.has(key)).map(({ keyStart, end }) => [bytes.subarray(keyStart, end)])
  const own = [[Buffer.from(`"name":${JSON.stringify(name)}`)], ...(inner === undefined ? [] : [[ARGUMENTS, inner]])]
  const params = Payload.at(objectOf([...own, ...others]))
  // Headers of the host mirror the arguments of the meta tool.
  return { ...call, target: name, params, unknownHeaders: NO_HEADERS }
}

/** `{a,b,c}` of members, each in pieces, with one copy. */
const objectOf = (members: readonly Parts[]): Buffer =>
  Buffer.concat([OPEN, ...members.flatMap((pieces, at) => (at === 0 ? pieces : [COMMA, ...pieces])), CLOSE])

/** The arguments of a meta tool. Throws `Misused` for others, with a hint for a model that did not nest them. */
const argumentsOf = ({ target, params }: Call, known: readonly string[]): Payload => {
  const args = params.object('arguments')
  if (args === undefined) throw new Misused(`${target} needs arguments: ${known.join(', ')}`)
  const stray = args.members.find(({ key }) => !known.includes(key))
  if (stray === undefined) return args
  const hint = target === CALL_TOOL ? '; what the tool takes stands inside of "arguments"' : ''
  throw new Misused(`${target} takes ${known.join(', ')}, not "${stray.key}"${hint}`)
}

const nameOf = (args: Payload, tool: string): string => {
  const name = args.text('name')
  if (name === undefined) throw new Misused(`${tool} needs "name": the name of a tool, as ${SEARCH_TOOLS} gives it`)
  return name
}

const isAnswerCount = (value: unknown): value is number =>
  Number.isInteger(value) && Number(value) >= 1 && Number(value) <= MAX_ANSWERS

/** The first sentence of the description. */
const oneLine = (definition: Buffer): string =>
  summaryOf(Payload.at(definition).text('description') ?? '').replaceAll(/\s+/g, ' ')
