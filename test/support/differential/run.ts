/** Says random conversations through a gateway: one host and one scripted server per pair, as many conversations as are asked for. */
import { fake } from '../fake-downstream.ts'
import type { FakeKind } from '../fake-downstream.ts'
import type { Host, TransportRow } from '../fake-host.ts'
import { everyTransport } from '../fake-host.ts'
import { everyFakeKind } from '../fake-downstream.ts'
import { KEY, MODERN } from '../fakes/messages.ts'
import type { Turn } from '../fakes/turn.ts'
import { startGateway } from '../gateway.ts'
import type { TestGateway } from '../gateway.ts'
import type { Block, Conversation, Exchange, Question, Written } from './conversation.ts'
import { write } from './conversation.ts'
import { exposedUri, judge } from './judge.ts'
import type { Asked, Cell } from './judge.ts'
import { member, readTree, valueOf } from './tree.ts'
import type { Tree } from './tree.ts'

export interface Pair {
  readonly name: string
  readonly host: TransportRow
  readonly revision: string
  readonly kind: FakeKind
}

const LEGACY = ['2024-11-05', '2025-03-26', '2025-06-18', '2025-11-25']

/** Every host of every revision before every kind of server. */
export const everyPair: readonly Pair[] = everyTransport.flatMap((host) =>
  (host.era === 'modern' ? [MODERN] : LEGACY)
    // Streamable HTTP began with 2025-03-26; hosts that say less over it do not exist.
    .filter((revision) => host.name !== 'legacy Streamable HTTP' || revision > '2024-11-05')
    .flatMap((revision) => everyFakeKind.map((kind) => ({ name: `${host.name} ${revision} × ${kind}`, host, revision, kind }))),
)

const PREFIX = 'fs'
const NAMES = ['one', 'two', 'three'] as const
const READ = ['file:///one', 'ui://two', 'note://three'] as const

/** What a server does at one exchange, and what it saw. */
interface Script {
  readonly exchange: Exchange
  readonly received: string[]
  answered: string | undefined
  readonly questions: Asked[]
  readonly asked: Asked[]
}

/** A gateway between one host and one scripted server, ready for conversations. */
export class Stage implements AsyncDisposable {
  readonly #cell: Cell
  readonly #gateway: TestGateway
  readonly #host: Host
  readonly #scripts = new Map<string, Script>()
  #current: Script | undefined

  private constructor(cell: Cell, gateway: TestGateway, host: Host) {
    this.#cell = cell
    this.#gateway = gateway
    this.#host = host
    for (const method of ['elicitation/create', 'sampling/createMessage'])
      host.answerText(method, (text) => (this.#current === undefined ? '{}' : this.#reply(this.#current, readTree(text))))
    for (const method of ['tools/call', 'prompts/get', 'resources/read'])
      gateway.fake(PREFIX).on(method, (turn) => this.#serve(turn))
  }

  static async open({ host: row, revision, kind }: Pair): Promise<Stage> {
    const spec = fake.of({ kind, tools: [...NAMES], prompts: [...NAMES], resources: [...READ] })
    const gateway = await startGateway({ servers: { [PREFIX]: spec, other: fake.of({ kind: 'modern http', tools: ['idle'] }) } })
    const host = await row.connect(gateway, row.era === 'modern' ? {} : { revision, capabilities: CAPABILITIES })
    const cell: Cell = {
      hostEra: row.era,
      hostRevision: revision,
      serverEra: kind.startsWith('modern') ? 'modern' : 'legacy',
      prefix: PREFIX,
    }
    return new Stage(cell, gateway, host)
  }

  /** Says one conversation; what was not as the model says, one sentence each. */
  async say(conversation: Conversation): Promise<string[]> {
    const found: string[] = []
    this.#gateway.fake(PREFIX).forget()
    this.#host.texts.length = 0
    // Two exchanges at once need different names and ids, or nothing could tell them apart.
    const exchanges = conversation.exchanges.map((exchange, at) => ({
      ...exchange,
      id: at === 0 ? exchange.id : String(100 + at),
      token: exchange.token === undefined || at === 0 ? exchange.token : `"token ${at}"`,
      reply: { ...exchange.reply, questions: this.#askable(conversation, exchange) },
    }))
    const begin = (exchange: Exchange, at: number): Promise<void> => this.#exchange(exchange, at, found)
    if (conversation.isConcurrent) await Promise.all(exchanges.map(begin))
    else for (const [at, exchange] of exchanges.entries()) await begin(exchange, at)
    return found
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#host[Symbol.asyncDispose]()
    await this.#gateway[Symbol.asyncDispose]()
  }

  async #exchange(exchange: Exchange, at: number, found: string[]): Promise<void> {
    const { method } = exchange
    const target = method === 'resources/read' ? (READ[at] ?? READ[0]) : (NAMES[at] ?? NAMES[0])
    const script: Script = { exchange, received: [], answered: undefined, questions: [], asked: [] }
    this.#scripts.set(`${method} ${target}`, script)
    this.#current = script
    const exposed = method === 'resources/read' ? exposedUri(this.#cell, target) : `${PREFIX}__${target}`
    const sent = this.#request(exchange, exposed, [])
    let answeredId = exchange.id
    let pending = this.#host.sendRaw(sent, JSON.parse(exchange.id) as string | number)
    let answer = await answerOf(pending)
    const texts = [...pending.texts]
    for (let round = 0; round < 4 && answer.includes('"input_required"') && isQuestion(answer); round++) {
      answeredId = String(1_000 + round)
      const retry = this.#request({ ...exchange, id: answeredId }, exposed, this.#answers(script, answer))
      pending = this.#host.sendRaw(retry, Number(answeredId))
      answer = await answerOf(pending)
      texts.push(...pending.texts)
    }
    if (!answer.startsWith('{')) return void found.push(`${method} was not answered: ${answer}`)
    const notifications = [...texts, ...this.#host.texts.filter((text) => isProgressOf(exchange, text))]
    found.push(...judge(this.#cell, { ...script, sent, notifications, answer, answeredId }))
  }

  /** What a modern host adds to its retry: an answer to each question, and the state as it came. */
  #answers(script: Script, answer: string): Written {
    const result = member(readTree(answer), 'result')
    const state = member(result, 'requestState')
    const responses: Written = (member(result, 'inputRequests')?.members ?? []).map(({ key, value }) => [
      JSON.stringify(key),
      this.#reply(script, value),
    ])
    return [
      ['"inputResponses"', write(responses, PLAIN)],
      ...(state === undefined ? [] : [['"requestState"', state.text] as const]),
    ]
  }

  /** The host's answer to the question it was asked, as the script has it. */
  #reply(script: Script, question: Tree): string {
    const asked = member(question, 'params')
    const params = asked?.text ?? '{}'
    const method = member(asked, 'messages') === undefined ? 'elicitation/create' : 'sampling/createMessage'
    const written = script.exchange.reply.questions.find((each) => each.method === method)
    const answer =
      written === undefined
        ? '{"action":"cancel"}'
        : write([...ANSWERS[written.method], ...written.answer.filter(([key]) => !isOwn(key))], PLAIN)
    script.asked.push({ method, params, answer })
    return answer
  }

  #request({ method, id, arguments: given, more, meta, token, spelling }: Exchange, name: string, answers: Written): string {
    const isModern = this.#cell.hostEra === 'modern'
    const own: Written = [
      ...(token === undefined ? [] : [['"progressToken"', token] as const]),
      ...(isModern
        ? ([
            [JSON.stringify(KEY.version).replaceAll('/', spelling.escapeEvery === 2 ? '\\/' : '/'), JSON.stringify(MODERN)],
            [JSON.stringify(KEY.capabilities), JSON.stringify(CAPABILITIES)],
            [JSON.stringify(KEY.logLevel), '"debug"'],
          ] as const)
        : []),
    ]
    const whole = [...own, ...(meta ?? [])]
    const params: Written = [
      [method === 'resources/read' ? '"uri"' : '"name"', JSON.stringify(name)],
      ...(given === undefined || method === 'resources/read' ? [] : [['"arguments"', given] as const]),
      ...(whole.length === 0 && meta === undefined ? [] : [['"_meta"', write(whole, { ...spelling, escapeEvery: 0 })] as const]),
      ...answers,
      ...more,
    ]
    return write(
      [
        ['"jsonrpc"', '"2.0"'],
        ['"id"', id],
        ['"method"', JSON.stringify(method)],
        ['"params"', write(params, spelling)],
      ],
      spelling,
    )
  }

  /** The questions that this host can be asked and that can be told apart: one conversation at a time, only what its revision knows. */
  #askable({ isConcurrent }: Conversation, { reply }: Exchange): readonly Question[] {
    if (isConcurrent) return []
    const knowsElicitation = this.#cell.hostEra === 'modern' || this.#cell.hostRevision >= '2025-06-18'
    const known = reply.questions.filter((question) => question.method === 'sampling/createMessage' || knowsElicitation)
    // Questions of one round may be asked in any order: two of one kind could not be told apart.
    return known.filter(({ method }, at) => known.findIndex((other) => other.method === method) === at)
  }

  async #serve(turn: Turn): Promise<undefined> {
    const { method, params = {} } = turn.message
    const script = this.#scripts.get(`${method} ${String(params['name'] ?? params['uri'])}`)
    if (script === undefined) {
      turn.fail(-32602, 'no script')
      return undefined
    }
    const { reply } = script.exchange
    script.received.push(turn.raw)
    if (!(await this.#isAsked(script, turn))) return undefined
    const token = (params['_meta'] as Record<string, unknown> | undefined)?.['progressToken']
    if (token !== undefined)
      for (const { value, more } of reply.progress)
        turn.say(
          note('notifications/progress', [
            ['"progressToken"', JSON.stringify(token)],
            ['"progress"', String(value)],
            ...fresh(more),
          ]),
        )
    for (const { level, more } of reply.logs)
      turn.say(
        note('notifications/message', [
          ['"level"', JSON.stringify(level)],
          ['"logger"', '"log"'],
          ['"data"', '1'],
          ...fresh(more),
        ]),
      )
    script.answered = this.#answer(script.exchange, turn.id)
    turn.finish(script.answered)
    return undefined
  }

  /** Asks in the manner of the server's era; false: the answers come with a retry. */
  async #isAsked(script: Script, turn: Turn): Promise<boolean> {
    const { questions } = script.exchange.reply
    if (questions.length === 0) return true
    if (this.#cell.serverEra === 'legacy') {
      for (const question of questions) {
        const { id, answer } = turn.connection.expectAnswer()
        const params = questionText(question)
        turn.say(
          write([...HEAD, ['"id"', String(id)], ['"method"', JSON.stringify(question.method)], ['"params"', params]], PLAIN),
        )
        await answer
        const { raw } = await this.#gateway
          .fake(PREFIX)
          .journal.until(
            ({ message, connection }) => message.method === undefined && message.id === id && connection === turn.connection,
          )
        script.questions.push({ method: question.method, params, answer: member(readTree(raw), 'result')?.text ?? raw })
      }
      return true
    }
    const params = member(readTree(turn.raw), 'params')
    const responses = member(params, 'inputResponses')
    if (responses === undefined) {
      const requests: Written = questions.map((question, at) => [
        `"k${at}"`,
        `{"method":${JSON.stringify(question.method)},"params":${questionText(question)}}`,
      ])
      const result = write(
        [
          ['"resultType"', '"input_required"'],
          ['"inputRequests"', write(requests, PLAIN)],
          ['"requestState"', STATE],
        ],
        PLAIN,
      )
      turn.finish(write([...HEAD, ['"id"', JSON.stringify(turn.id)], ['"result"', result]], PLAIN))
      return false
    }
    const state = member(params, 'requestState')?.text
    questions.forEach((question, at) =>
      script.questions.push({
        method: question.method,
        params: questionText(question),
        answer:
          state !== undefined && JSON.parse(state) === JSON.parse(STATE)
            ? (member(responses, `k${at}`)?.text ?? '"nothing"')
            : JSON.stringify(`the state ${state}`),
      }),
    )
    return true
  }

  #answer({ method, reply }: Exchange, id: string | number): string {
    const { outcome, spelling } = reply
    const body: Written =
      outcome.kind === 'error'
        ? [
            [
              '"error"',
              write(
                [
                  ['"code"', String(outcome.code)],
                  ['"message"', outcome.message],
                  ...(outcome.data === undefined ? [] : [['"data"', outcome.data] as const]),
                ],
                spelling,
              ),
            ],
          ]
        : [['"result"', write(this.#result(method, outcome), spelling)]]
    return write([['"jsonrpc"', '"2.0"'], ['"id"', JSON.stringify(id)], ...body], spelling)
  }

  #result(method: Exchange['method'], outcome: Exchange['reply']['outcome'] & { kind: 'result' }): Written {
    const { blocks, structured, isError, more, meta } = outcome
    const own: Written =
      this.#cell.serverEra === 'modern'
        ? [
            ['"resultType"', '"complete"'],
            ...(method === 'resources/read'
              ? ([
                  ['"ttlMs"', '1000'],
                  ['"cacheScope"', '"public"'],
                ] as const)
              : []),
          ]
        : []
    const list = (blocks ?? []).map(blockText)
    const content: Written =
      method === 'tools/call'
        ? [
            ...(blocks === undefined ? [] : [['"content"', `[${list.join(',')}]`] as const]),
            ...(structured === undefined ? [] : [['"structuredContent"', structured] as const]),
            ...(isError === undefined ? [] : [['"isError"', String(isError)] as const]),
          ]
        : method === 'prompts/get'
          ? [['"messages"', `[${list.map((text) => `{"role":"user","content":${text}}`).join(',')}]`]]
          : [['"contents"', `[${(blocks ?? []).map((block) => contentText(block)).join(',')}]`]]
    return [
      ...own,
      ...content,
      ...(meta === undefined
        ? []
        : [
            [
              '"_meta"',
              write(
                meta,
                outcome.more.length > 0 ? { space: ' ', turn: 0, escapeEvery: 0 } : { space: '', turn: 0, escapeEvery: 0 },
              ),
            ] as const,
          ]),
      ...more,
    ]
  }
}

/** On pipes and HTTP+SSE notifications come beside the answer; the token tells whose progress it is. */
const isProgressOf = ({ token }: Exchange, text: string): boolean => {
  const { params } = JSON.parse(text) as { params?: { progressToken?: unknown } }
  return token !== undefined && params?.progressToken === JSON.parse(token)
}

/** Members that a notification has of its own may not be repeated. */
const fresh = (more: Written): Written =>
  more.filter(([key]) => !['progress', 'data', 'level'].includes(JSON.parse(key) as string))

const note = (method: string, params: Written): string =>
  write(
    [
      ['"jsonrpc"', '"2.0"'],
      ['"method"', JSON.stringify(method)],
      ['"params"', write(params, { space: '', turn: 0, escapeEvery: 0 })],
    ],
    {
      space: '',
      turn: 0,
      escapeEvery: 0,
    },
  )

const blockText = (block: Block): string => {
  const { type, more } = block
  const own: Written =
    type === 'resource_link'
      ? [
          ['"uri"', JSON.stringify(block.uri)],
          ['"name"', '"n"'],
        ]
      : type === 'resource'
        ? [['"resource"', write([['"uri"', JSON.stringify(block.uri)], ['"text"', '"t"'], ...more], PLAIN)]]
        : type === 'text'
          ? [['"text"', '"\\u0041 \\"quoted\\" text"']]
          : [
              ['"data"', '"QUJD"'],
              ['"mimeType"', '"audio/wav"'],
            ]
  return write([['"type"', JSON.stringify(type)], ...own, ...more], PLAIN)
}

const contentText = (block: Block): string =>
  write([['"uri"', JSON.stringify('uri' in block ? block.uri : 'file:///one')], ['"text"', '"t"'], ...block.more], PLAIN)

/** What answers must have to be answers; members of a script may not repeat them. */
const ANSWERS: Readonly<Record<Question['method'], Written>> = {
  'elicitation/create': [
    ['"action"', '"accept"'],
    ['"content"', '{"n":1.0,"caf\\u00e9":"\\u0041"}'],
  ],
  'sampling/createMessage': [
    ['"role"', '"assistant"'],
    ['"model"', '"m"'],
    ['"content"', '{"type":"text","text":"\\u0041"}'],
  ],
}
const isOwn = (key: string): boolean => ['action', 'content', 'role', 'model'].includes(JSON.parse(key) as string)
const SCHEMA = '{"type":"object","properties":{"n":{"type":"number","minimum":1.0}}}'
const CAPABILITIES = { elicitation: { form: {} }, sampling: {} }
const STATE = '"state \\u00e9 1.0"'
const HEAD: Written = [['"jsonrpc"', '"2.0"']]

const questionText = ({ method, message, more }: Question): string =>
  method === 'elicitation/create'
    ? write([['"message"', message], ['"requestedSchema"', SCHEMA], ...more], PLAIN)
    : write(
        [['"messages"', `[{"role":"user","content":{"type":"text","text":${message}}}]`], ['"maxTokens"', '10'], ...more],
        PLAIN,
      )

const isQuestion = (answer: string): boolean =>
  valueOf(member(member(readTree(answer), 'result'), 'resultType')) === 'input_required'

const answerOf = (pending: { raw: Promise<string> }): Promise<string> =>
  Promise.race([pending.raw, late()]).catch((error: unknown) => String(error))

const PLAIN = { space: '', turn: 0, escapeEvery: 0 }

/** No answer within this is a hang: a finding, not a failure of the run. */
const LATE_MS = 10_000
const late = (): Promise<string> =>
  new Promise((resolve) => setTimeout(() => resolve('nothing came within 10 s'), LATE_MS).unref())
