/**
 * The one table of scenarios: what a host does with a peer server, in commands that every host driver knows (README.md). A scenario
 * returns its transcript; the transcript of the direct pair and the one through Trunkline are compared.
 */

export type Json = Record<string, unknown>

/** A connected host, driven from outside. */
export interface Driven {
  /** Sends a command; resolves with `{ result }` or `{ error }`, never rejects. */
  do(verb: string, params?: Json): Promise<Json>
  /** The same, without waiting: the number of the command, and its answer. */
  start(verb: string, params?: Json): { readonly id: number; readonly answer: Promise<Json> }
  /**
   * The events of a kind since the scenario began. The direct pair waits for as many as are usual, a few seconds at most, and until none
   * has come for a while; through Trunkline the host waits for as many as the direct pair got.
   */
  events(kind: string, usual?: number): Promise<Json[]>
  /** Asks again until the answer is as wanted: for a moment in the direct pair; through Trunkline for long where that pair reached it, and else once. */
  until(ask: () => Promise<Json>, isReached: (answer: Json) => boolean): Promise<Json>
  /** Ends Trunkline in an orderly way and starts it again at the same address; nothing in the direct pair, and where the host started it. */
  restart(): Promise<void>
  /** What the host was asked so far. */
  asked(): readonly Json[]
  /** Unlike in any other scenario of any cell. */
  readonly key: string
}

export interface Scenario {
  readonly name: string
  run(host: Driven): Promise<unknown>
}

const call = (name: string, args?: Json, more: Json = {}): Json => ({ name, ...(args && { arguments: args }), ...more })

/** A call that asks the host something. */
const asks = (name: string, tool: string): Scenario => ({
  name,
  run: async (host) => {
    const answer = await host.do('call', call(tool))
    return { answer, asked: host.asked() }
  },
})

/** What the server knows of the cancelled call: a cancellation travels beside later calls, not before them. */
const seenCancelled = (host: Driven): Promise<Json> =>
  host.until(
    () => host.do('call', call('cancelled', { key: host.key })),
    (answer) => !JSON.stringify(answer).includes('not cancelled'),
  )

const toolNames = async (host: Driven): Promise<unknown> =>
  (((await host.do('list', { of: 'tools' }))['result'] ?? []) as { name: string }[]).map(({ name }) => name)

export const SCENARIOS: readonly Scenario[] = [
  ...['tools', 'resources', 'resourceTemplates', 'prompts'].map((of) => ({
    name: `${of}: list, every page`,
    run: (host: Driven) => host.do('list', { of }),
  })),
  { name: 'call: text and arguments', run: (host) => host.do('call', call('echo', { text: 'ünï \u2028 "x"', times: 2 })) },
  { name: 'call: blocks of each type', run: (host) => host.do('call', call('blocks')) },
  { name: 'call: structured content', run: (host) => host.do('call', call('structured', { n: 3 })) },
  { name: 'call: isError', run: (host) => host.do('call', call('fail')) },
  { name: 'call: error with code and data', run: (host) => host.do('call', call('refuse')) },
  { name: 'call: arguments that do not fit', run: (host) => host.do('call', call('echo', { times: 9 })) },
  { name: 'call: unknown tool', run: (host) => host.do('call', call('no_such_tool')) },
  {
    name: 'call: progress',
    run: async (host) => {
      const answer = await host.do('call', call('progress', { steps: 3 }, { progress: true }))
      const seen = (await host.events('progress', 3)).map(({ params }) => params as { progress: number })
      // mcp-go sends them in any order.
      return { answer, progress: seen.toSorted((a, b) => a.progress - b.progress) }
    },
  },
  {
    name: 'call: log messages at a level',
    run: async (host) => {
      const level = await host.do('level', { level: 'info' })
      const answer = await host.do('call', call('log'))
      // Servers may send what is below the level; Trunkline does not (B147).
      const messages = (await host.events('log', 3)).filter(({ params }) => (params as Json)['level'] !== 'debug')
      return { level, answer, messages: messages.toSorted((a, b) => (JSON.stringify(a) < JSON.stringify(b) ? -1 : 1)) }
    },
  },
  {
    name: 'call: cancelled by the host',
    run: async (host) => {
      const { id, answer } = host.start('call', call('wait', { key: host.key }, { progress: true }))
      const begun = await host.events('progress', 1)
      await host.do('cancel', { call: id })
      const ended = await answer
      return {
        begun: begun.map(({ params }) => params),
        ended,
        seen: await seenCancelled(host),
      }
    },
  },
  {
    name: 'call: the host’s timeout',
    run: async (host) => {
      const late = await host.do('call', call('slow', { ms: 1_500 }, { timeoutMs: 400 }))
      return { late: 'error' in late, next: await host.do('call', call('echo', { text: 'still there' })) }
    },
  },
  {
    name: 'call: several at once',
    run: (host) =>
      Promise.all([300, 200, 100].map((ms) => host.do('call', call('slow', { ms }))).concat(host.do('call', call('fail')))),
  },
  {
    name: 'tools: list_changed',
    run: async (host) => {
      const before = await toolNames(host)
      const grown = await host.do('call', call('grow'))
      const told = await host.events('changed', 1)
      const during = await toolNames(host)
      const called = await host.do('call', call('extra'))
      const shrunk = await host.do('call', call('grow', { remove: true }))
      await host.events('changed', 1)
      return { before, grown, told: told.length > 0, during, called, shrunk, after: await toolNames(host) }
    },
  },
  { name: 'resources: read a text', run: (host) => host.do('read', { uri: 'peer://text' }) },
  { name: 'resources: read a blob', run: (host) => host.do('read', { uri: 'peer://blob' }) },
  { name: 'resources: read through a template', run: (host) => host.do('read', { uri: 'peer://items/a%20b' }) },
  { name: 'resources: read what is not there', run: (host) => host.do('read', { uri: 'other://missing' }) },
  {
    name: 'resources: subscribe, update, unsubscribe',
    run: async (host) => {
      const subscribed = await host.do('subscribe', { uri: 'peer://watched' })
      if ('error' in subscribed) return { subscribed }
      await host.do('call', call('touch'))
      const updates = await host.events('updated', 1)
      return { subscribed, told: updates.length > 0, unsubscribed: await host.do('unsubscribe', { uri: 'peer://watched' }) }
    },
  },
  { name: 'prompts: get', run: (host) => host.do('prompt', { name: 'greet', arguments: { name: 'Ada', style: 'long' } }) },
  { name: 'prompts: unknown', run: (host) => host.do('prompt', { name: 'no_such_prompt' }) },
  {
    name: 'completion: prompt and template',
    run: async (host) => [
      await host.do('complete', { ref: { type: 'ref/prompt', name: 'greet' }, argument: { name: 'name', value: 'al' } }),
      await host.do('complete', {
        ref: { type: 'ref/resource', uri: 'peer://items/{id}' },
        argument: { name: 'id', value: 'b' },
      }),
    ],
  },
  asks('elicitation: form', 'ask_form'),
  asks('elicitation: URL', 'ask_url'),
  asks('sampling', 'sample'),
  asks('roots', 'roots'),
  { name: 'ping', run: (host) => host.do('ping') },
  {
    name: 'restart of the gateway',
    run: async (host) => {
      await host.restart()
      return { called: await host.do('call', call('echo', { text: 'after it' })), listed: await toolNames(host) }
    },
  },
]

/** What a session outlives that one side pings at an interval, or both: `ms` are a few intervals. */
export const keptAlive = (ms: number): Scenario => ({
  name: 'keep-alive: several intervals',
  run: async (host) => {
    const session = await host.do('call', call('session'))
    const slept = await host.do('call', call('slow', { ms }))
    const after = await host.do('call', call('session'))
    return { slept, isNamed: 'result' in after, isSame: JSON.stringify(after) === JSON.stringify(session) }
  },
})

/** What a host is asked that declares nothing, as SDKs do by default. */
export const DEFAULT_SCENARIOS: readonly Scenario[] = [
  { name: 'default host: tools', run: (host) => host.do('list', { of: 'tools' }) },
  { name: 'default host: call', run: (host) => host.do('call', call('echo', { text: 'hello' })) },
  asks('default host: elicitation', 'ask_form'),
  asks('default host: sampling', 'sample'),
]
