/**
 * One call in flight: the facts and times that are recorded of it (`CallRecord`). Until the call ends, the recording refers to the messages
 * themselves; then the parts to be kept are copied, and the messages are released.
 */
import type { Call, HostSession, Outcome, Question, Scope } from '../../rpc/call.ts'
import type { CallRecord, Deviation, Hop } from '../../rpc/record.ts'
import type { Envelope } from '../../wire/message/envelope.ts'
import { byteLength } from '../../wire/message/payload.ts'
import type { Parts } from '../../wire/message/payload.ts'
import { StreamedResult } from '../../wire/result/streamed-result.ts'
import { NEVER } from './call-facts.ts'
import type { AskFacts, CallFacts, LaneFacts } from './call-facts.ts'
import type { HostTransport } from './captured.ts'
import { endOfError, endOfOutcome, endOfStream, GOOD_END } from '../call-end.ts'
import type { CallEnd } from '../call-end.ts'
import { EndsCollector } from './message-memory.ts'
import type { CapturedMessage, MessageMemory } from './message-memory.ts'
import type { CapturedBodies } from '../options.ts'
import { isErrorOutcome } from '../outcomes.ts'
import { firstCharacters } from '../../values/cut-text.ts'

/** The facts of a call at its receipt. */
export interface Begun extends Pick<CallFacts, 'method' | 'principal' | 'scope' | 'revision' | 'clientInfo' | 'transport'> {
  readonly ref: number
  readonly session: HostSession | undefined
  /** The received message; `undefined`: not from a host. */
  readonly message: Buffer | undefined
  readonly replayOf?: number | undefined
}

/** The dependencies of a recording. */
export interface RecordingEnvironment {
  readonly nowMs: () => number
  readonly wallMs: () => number
  readonly bodies: () => CapturedBodies
  /** Bytes kept of one message. */
  readonly maxBodyBytes: () => number
  readonly memory: MessageMemory
  /** Called when the call has ended. */
  readonly over: (recording: Recording) => void
  /** Called when the system has accepted the answer of an ended call. */
  readonly written: (recording: Recording) => void
}

/** The messages of a request to a server, while the call is in flight. */
interface LaneMessages {
  parts: Parts | undefined
  answer: Buffer | undefined
  stream: EndsCollector | undefined
}

/** Longest kept method: a bridge relays any, also of megabytes. */
const METHOD_CHARACTERS = 100
const NO_ASKS: readonly AskFacts[] = []
const NO_DEVIATIONS: readonly Deviation[] = []

export class Recording implements CallRecord, CallFacts {
  server?: string
  original?: string
  isListed?: boolean
  denied?: NonNullable<CallRecord['denied']>
  needsSignIn?: true
  readonly id: number
  readonly method: string
  readonly principal: string
  readonly scope: Scope
  readonly revision: string
  readonly sessionId: string | undefined
  readonly clientInfo: unknown
  readonly transport: HostTransport | undefined
  readonly replayOf: number | undefined
  readonly receivedMs: number
  readonly atMs: number
  name: string | undefined = undefined
  startedMs = NEVER
  slottedMs = NEVER
  answeredMs = NEVER
  writtenMs = NEVER
  bytesIn: number
  bytesOut = 0
  readonly lanes: LaneFacts[] = []
  asks: readonly AskFacts[] = NO_ASKS
  deviations: readonly Deviation[] = NO_DEVIATIONS
  request: CapturedMessage | undefined = undefined
  response: CapturedMessage | undefined = undefined
  /** Its place in the ring; `undefined`: not kept. */
  place: number | undefined = undefined
  readonly #environment: RecordingEnvironment
  /** By lane; `undefined`: no messages are kept. */
  #messages: LaneMessages[] | undefined
  #message: Buffer | undefined
  #responseChannel: Call['responseChannel']
  #end: CallEnd | undefined
  #isStreamed = false
  #isOver = false

  constructor(begun: Begun, environment: RecordingEnvironment) {
    this.id = begun.ref
    this.method = firstCharacters(begun.method, METHOD_CHARACTERS)
    this.principal = begun.principal
    this.scope = begun.scope
    this.revision = begun.revision
    this.sessionId = begun.session?.id
    this.clientInfo = begun.clientInfo
    this.transport = begun.transport
    this.replayOf = begun.replayOf
    this.bytesIn = begun.message?.length ?? 0
    this.#message = begun.message
    this.#environment = environment
    this.receivedMs = environment.nowMs()
    this.atMs = environment.wallMs()
  }

  get end(): CallEnd | undefined {
    return this.#isOver ? this.#end : undefined
  }
  get traceId(): string | undefined {
    return this.#responseChannel?.traceId
  }

  /** The call enters the layers. */
  started({ target, responseChannel, params }: Call): void {
    this.startedMs = this.#environment.nowMs()
    this.name = target
    this.#responseChannel = responseChannel
    this.bytesIn ||= params.end - params.start
  }

  slotted(): void {
    if (Number.isNaN(this.slottedMs)) this.slottedMs = this.#environment.nowMs()
  }

  sent(parts: Parts, id: number, hop: Hop): void {
    const nowMs = this.#environment.nowMs()
    const last = this.#lastLane
    if (last?.end === 'open') {
      last.end = 'lost'
      last.doneMs = nowMs
    }
    const kind = last === undefined ? 'call' : last.end === 'result' ? 'round' : 'retry'
    this.lanes.push({
      hop,
      id,
      kind,
      sentMs: nowMs,
      firstMs: NEVER,
      doneMs: NEVER,
      end: 'open',
      request: undefined,
      response: undefined,
    })
    if (this.#mayKeep) this.#messagesOf(this.lanes.length - 1).parts = parts
  }

  progressed(): void {
    const lane = this.#lastLane
    if (lane !== undefined && Number.isNaN(lane.firstMs)) lane.firstMs = this.#environment.nowMs()
  }

  received({ bytes, error, result }: Envelope): void {
    const lane = this.#lastLane
    if (lane === undefined) return
    const nowMs = this.#environment.nowMs()
    if (Number.isNaN(lane.firstMs)) lane.firstMs = nowMs
    if (result instanceof StreamedResult) {
      if (!this.#mayKeep) return
      const stream = new EndsCollector(this.#environment.maxBodyBytes())
      this.#messagesOf(this.lanes.length - 1).stream = stream
      return result.tap((chunk) => stream.push(chunk))
    }
    lane.doneMs = nowMs
    lane.end = error === undefined ? 'result' : 'error'
    if (this.#mayKeep) this.#messagesOf(this.lanes.length - 1).answer = bytes
  }

  deviated(deviation: Deviation): void {
    this.deviations = [...this.deviations, deviation]
  }

  /** The layers have returned a result. A streamed result is followed to its end. */
  returned({ method, signal }: Pick<Call, 'method' | 'signal'>, outcome: Outcome): void {
    const { result } = outcome
    if (!(result instanceof StreamedResult)) {
      this.#end = endOfOutcome(method, signal.aborted, outcome)
      return
    }
    this.#isStreamed = true
    result.onOver((bytes, end) => {
      this.bytesOut = bytes
      this.#end = endOfStream(result, end)
      this.answered(undefined)
    })
  }

  /** The layers have rejected the call. */
  rejected(error: unknown, isAborted: boolean): void {
    if (this.#isOver) return
    this.#end = endOfError(error, isAborted, this.denied)
  }

  /** The answer is ready; `undefined`: there is none. Copies the messages to be kept now, before their memory is reused. */
  answered(parts: Parts | undefined): void {
    if (this.#isOver) return
    this.#isOver = true
    this.#end ??= GOOD_END
    const nowMs = this.#environment.nowMs()
    this.answeredMs = this.writtenMs = nowMs
    if (parts !== undefined) this.bytesOut = byteLength(parts)
    this.#close(nowMs)
    const bodies = this.#environment.bodies()
    if (bodies === 'all' || (bodies === 'errors' && isErrorOutcome(this.#end.outcome))) this.#keep(parts)
    this.#message = this.#messages = undefined
    this.#environment.over(this)
  }

  /** The system has accepted the answer. */
  written(): void {
    this.writtenMs = this.#environment.nowMs()
    this.#environment.written(this)
  }

  /** Runs a server request to the host, and measures the time of its answer. */
  async timed<T>({ method }: Question, answer: () => Promise<T>): Promise<T> {
    const ask: AskFacts = { method, fromMs: this.#environment.nowMs(), toMs: NEVER }
    this.asks = [...this.asks, ask]
    try {
      return await answer()
    } finally {
      if (Number.isNaN(ask.toMs)) ask.toMs = this.#environment.nowMs()
    }
  }

  get #lastLane(): LaneFacts | undefined {
    const { lanes } = this
    return lanes.length === 0 ? undefined : lanes[lanes.length - 1]
  }

  get #mayKeep(): boolean {
    return this.#environment.bodies() !== 'off'
  }

  #messagesOf(lane: number): LaneMessages {
    const all = (this.#messages ??= [])
    return (all[lane] ??= { parts: undefined, answer: undefined, stream: undefined })
  }

  /** Ends open lanes and server requests with the call. */
  #close(nowMs: number): void {
    for (const ask of this.asks) if (Number.isNaN(ask.toMs)) ask.toMs = nowMs
    const last = this.#lastLane
    if (last?.end !== 'open') return
    last.doneMs = nowMs
    last.end = this.#isStreamed && !isErrorOutcome(this.#end?.outcome ?? 'ok') ? 'result' : 'lost'
  }

  #keep(parts: Parts | undefined): void {
    const { memory, maxBodyBytes } = this.#environment
    const maxBytes = maxBodyBytes()
    if (this.#message !== undefined) this.request = memory.copy([this.#message], maxBytes)
    if (parts !== undefined) this.response = memory.copy(parts, maxBytes)
    for (const [at, lane] of this.lanes.entries()) {
      const messages = this.#messages?.[at]
      if (messages?.parts !== undefined) lane.request = memory.copy(messages.parts, maxBytes)
      if (messages?.answer !== undefined) lane.response = memory.copy([messages.answer], maxBytes)
      if (messages?.stream !== undefined) lane.response = messages.stream.captured(memory)
    }
  }
}
