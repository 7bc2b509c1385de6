/**
 * Finding tools in large sets (`toolsets.<name>.discovery`): hosts are listed three tools of ours. A call of the third becomes the
 * call of the tool it names before anything else looks at it, so that filters, limits, questions and the audit meet what is really
 * called; what it carries is relayed as it came, and it can do nothing that a plain call could not.
 */
import { CALL_TOOL, DEFAULT_ANSWERS, DESCRIBE_TOOL, isMetaTool, MAX_ANSWERS, SEARCH_TOOLS } from '../catalog/view/meta-tools.ts'
import { summaryOf } from '../catalog/search/tool-text.ts'
import { complete, NO_HEADERS } from '../rpc/call.ts'
import type { Call, Caller, Handler, Layer, Outcome } from '../rpc/call.ts'
import { Payload } from '../wire/message/payload.ts'
import type { Parts } from '../wire/message/payload.ts'
import type { Access } from './access.ts'
import type { Feed } from './lists/feed.ts'
import { Searches } from './lists/searches.ts'

const OPEN = Buffer.from('{')
const COMMA = Buffer.from(',')
const CLOSE = Buffer.from('}')
const ARGUMENTS = Buffer.from('"arguments":')
const OWN_MEMBERS: ReadonlySet<string> = new Set(['name', 'arguments'])

/** What is wrong with the arguments of one of our tools: an answer to the model, which can do better, and no error of the protocol. */
class Misused extends Error {}

export class Discovery {
  readonly #feed: Feed
  readonly #known: (caller: Caller) => Promise<void>
  readonly #access: Access
  readonly #searches = new Searches()

  /** `known`: waits until the servers that are starting have said what they have. */
  constructor(feed: Feed, known: (caller: Caller) => Promise<void>, access: Access) {
    this.#access = access
    this.#feed = feed
    this.#known = known
  }

  /** Outermost: from here on a call of `gateway__call_tool` is the call of the tool it names. One that cannot be read goes on as it is. */
  readonly unwrap: Layer = (inner) => (call) => {
    if (call.target !== CALL_TOOL || !this.#isOffered(call)) return inner(call)
    let named = call
    try {
      named = innerCall(call)
    } catch (error) {
      if (!(error instanceof Misused)) throw error
    }
    return inner(named)
  }

  /** Innermost, where servers are looked for: what is still a call of one of our tools is answered here. */
  readonly answer: Layer = (inner) => (call) =>
    isMetaTool(call.target) && this.#isOffered(call) ? this.#answer(call, inner) : inner(call)

  /** Also where `auto` lists everything just now: a host may still hold the list of a minute ago, and nothing is hidden from it. */
  #isOffered({ method, caller }: Call): boolean {
    return method === 'tools/call' && (this.#feed.viewOf(caller).toolset?.discovery ?? 'full') !== 'full'
  }

  async #answer(call: Call, inner: Handler): Promise<Outcome> {
    try {
      await this.#known(call.caller)
      if (call.target === SEARCH_TOOLS) return said(await this.#search(call))
      if (call.target === DESCRIBE_TOOL) return said(await this.#describe(call))
      return await inner(innerCall(call))
    } catch (error) {
      if (error instanceof Misused) return said(error.message, true)
      throw error
    }
  }

  async #search(call: Call): Promise<string> {
    const args = argumentsOf(call, ['query', 'limit'])
    const query = args.text('query')
    if (query === undefined || query.trim() === '')
      throw new Misused(`${SEARCH_TOOLS} needs "query": what is to be done, in words`)
    const limit = args.has('limit') ? args.value('limit') : DEFAULT_ANSWERS
    if (!isAnswerCount(limit)) throw new Misused(`"limit" must be a whole number from 1 to ${MAX_ANSWERS}`)
    const view = this.#feed.viewOf(call.caller)
    const { rows, entries } = view.list('tools')
    const isShown = await this.#access.shown(view, 'tools', call.caller)
    const best = await this.#searches.find(view, query, isShown === undefined ? limit : rows.length)
    const tools: object[] = []
    for (const { at, score } of best) {
      const [row, entry] = [rows[at], entries[at]]
      if (tools.length === limit) break
      if (row === undefined || entry === undefined || isShown?.(row) === false) continue
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
    if (row === undefined || entry === undefined || isShown?.(row) === false) throw new Misused(`Unknown tool: ${name}`)
    return entry.toString()
  }
}

/** The call of the tool that is named: its arguments are bytes of the host's, and everything else of the request goes with it. */
const innerCall = (call: Call): Call => {
  const args = argumentsOf(call, ['name', 'arguments'])
  const name = nameOf(args, CALL_TOOL)
  if (isMetaTool(name)) throw new Misused(`${name} is called by itself, not with ${CALL_TOOL}`)
  const inner = args.raw('arguments')
  if (inner !== undefined && inner[0] !== 0x7b) throw new Misused(`"arguments" of ${CALL_TOOL} must be an object`)
  const { bytes, members } = call.params
  const others = members.filter(({ key }) => !OWN_MEMBERS.has(key)).map(({ keyStart, end }) => [bytes.subarray(keyStart, end)])
  const own = [[Buffer.from(`"name":${JSON.stringify(name)}`)], ...(inner === undefined ? [] : [[ARGUMENTS, inner]])]
  const params = Payload.at(objectOf([...own, ...others]))
  // What the host mirrored into headers belongs to our tool, which asks for none.
  return { ...call, target: name, params, unknownHeaders: NO_HEADERS }
}

/** `{a,b,c}` of members, each in pieces; one copy. */
const objectOf = (members: readonly Parts[]): Buffer =>
  Buffer.concat([OPEN, ...members.flatMap((pieces, at) => (at === 0 ? pieces : [COMMA, ...pieces])), CLOSE])

/** The arguments of one of our tools; refused if there are others: a model that forgot to nest them is told so. */
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

/** What a definition says first of itself. */
const oneLine = (definition: Buffer): string =>
  summaryOf(Payload.at(definition).text('description') ?? '').replaceAll(/\s+/g, ' ')

const said = (text: string, isError = false): Outcome =>
  complete(Payload.of({ content: [{ type: 'text', text }], ...(isError && { isError }) }))
