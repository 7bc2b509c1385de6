/**
 * Captured calls in the order in which they ended, limited by bytes and age; the oldest are removed first.
 *
 * A call is a row of numbers and references in reusable blocks, not an object: tens of thousands of objects that live for minutes would cost
 * more in garbage collection than recording a call costs.
 */
import type { Scope } from '../../rpc/call.ts'
import type { Deviation, Hop } from '../../rpc/record.ts'
import { memberOf } from '../../values/json-object.ts'
import { messagesOf, NEVER } from './call-facts.ts'
import type { AskFacts, CallFacts, LaneFacts } from './call-facts.ts'
import type { HostTransport } from './captured.ts'
import type { CallEnd } from '../call-end.ts'
import type { CapturedMessage } from './message-memory.ts'
import { firstCharacters } from '../../values/cut-text.ts'

export interface RingLimits {
  readonly maxBytes: number
  readonly maxAgeMs: number
}

/** Approximate memory of a call without messages. */
const BASE_SIZE = 1_024
const LANE_SIZE = 256
const ASK_SIZE = 128

const CALLS_PER_BLOCK = 256
const MAX_FREE_BLOCKS = 4

// Columns of numbers.
const ID = 0
const AT = 1
const RECEIVED = 2
const STARTED = 3
const SLOTTED = 4
const ANSWERED = 5
const WRITTEN = 6
const BYTES_IN = 7
const BYTES_OUT = 8
const LANE_ID = 9
const LANE_SENT = 10
const LANE_FIRST = 11
const LANE_DONE = 12
const LANE_END = 13
const KEPT = 14
const SIZE = 15
const NUMBERS = 16

/** Never present at run time: it ties a column to the type of its references. */
declare const HOLDS: unique symbol
type Column<T> = number & { readonly [HOLDS]?: T }

// Columns of references.
const METHOD: Column<string> = 0
const PRINCIPAL: Column<string> = 1
const SCOPE: Column<Scope> = 2
const REVISION: Column<string> = 3
const SESSION: Column<string | undefined> = 4
const CLIENT: Column<unknown> = 5
const TRANSPORT: Column<HostTransport | undefined> = 6
const SERVER: Column<string | undefined> = 7
const ORIGINAL: Column<string | undefined> = 8
const NAME: Column<string | undefined> = 9
const TRACE: Column<string | undefined> = 10
const END: Column<CallEnd> = 11
const HOP: Column<Hop> = 12
const MORE: Column<More | undefined> = 13
const REFS = 14

const LANE_ENDS: readonly LaneFacts['end'][] = ['result', 'error', 'lost', 'open']
/** `LANE_ID` without a lane, or with lanes in `MORE`. */
const NO_LANE = -1

interface Block {
  readonly numbers: Float64Array
  readonly refs: unknown[]
}

/** Facts that few calls have. */
interface More {
  readonly needsSignIn: true | undefined
  readonly replayOf: number | undefined
  readonly asks: readonly AskFacts[]
  readonly deviations: readonly Deviation[]
  /** `undefined`: there is at most one lane, in the number columns. */
  readonly lanes: readonly LaneFacts[] | undefined
  readonly request: CapturedMessage | undefined
  readonly response: CapturedMessage | undefined
}

/** The place of a call: increasing, never reused. */
export type Place = number

export class CallRing {
  readonly #limits: () => RingLimits
  readonly #evicted: (reason: 'bytes' | 'age') => void
  readonly #hops: Hop[] = []
  #lastInfo: unknown = undefined
  #lastClient: unknown = undefined
  #blocks: Block[] = []
  #free: Block[] = []
  /** The first place of the first block. */
  #base = 0
  #first = 0
  #next = 0
  #bytes = 0

  /** `evicted` is called for each removed call. */
  constructor(limits: () => RingLimits, evicted: (reason: 'bytes' | 'age') => void = () => undefined) {
    this.#limits = limits
    this.#evicted = evicted
  }

  get size(): number {
    return this.#next - this.#first
  }
  get bytes(): number {
    return this.#bytes
  }
  /** The place of the oldest call. */
  get first(): Place {
    return this.#first
  }
  get next(): Place {
    return this.#next
  }

  /** Adds a call and returns its place. */
  add(call: CallFacts, nowMs: number): Place {
    const place = this.#next++
    const block = this.#blockOf(place) ?? this.#openBlock()
    const more = moreOf(call)
    const size = sizeOf(call, more)
    writeNumbers(block.numbers, numberAt(place), call, more?.lanes === undefined ? call.lanes[0] : undefined, nowMs, size)
    this.#writeRefs(block.refs, refAt(place), call, more)
    this.#bytes += size
    this.#limit(nowMs)
    return place
  }

  /** Sets when the system accepted the answer. Ignored if the call was removed. */
  written(place: Place, ms: number): void {
    if (place < this.#first) return
    const block = this.#blockOf(place)
    if (block !== undefined) block.numbers[numberAt(place) + WRITTEN] = ms
  }

  /** All places, oldest first. */
  *places(): Generator<Place> {
    for (let place = this.#first; place < this.#next; place++) yield place
  }

  idAt(place: Place): number {
    return this.#number(place, ID)
  }
  atMs(place: Place): number {
    return this.#number(place, AT)
  }
  keptMs(place: Place): number {
    return this.#number(place, KEPT)
  }
  principalAt(place: Place): string {
    return this.#ref(place, PRINCIPAL)
  }
  messagesAt(place: Place): readonly CapturedMessage[] {
    const more = this.#ref(place, MORE)
    return more === undefined ? [] : messagesOf(more)
  }

  find(id: number): CallFacts | undefined {
    for (const place of this.places()) if (this.idAt(place) === id) return this.at(place)
    return undefined
  }

  at(place: Place): CallFacts {
    const number = (column: number): number => this.#number(place, column)
    const ref = <T>(column: Column<T>): T => this.#ref(place, column)
    const more = ref(MORE)
    return {
      id: number(ID),
      method: ref(METHOD),
      principal: ref(PRINCIPAL),
      scope: ref(SCOPE),
      revision: ref(REVISION),
      sessionId: ref(SESSION),
      clientInfo: ref(CLIENT),
      transport: ref(TRANSPORT),
      replayOf: more?.replayOf,
      name: ref(NAME),
      server: ref(SERVER),
      original: ref(ORIGINAL),
      ...(more?.needsSignIn && { needsSignIn: more.needsSignIn }),
      traceId: ref(TRACE),
      atMs: number(AT),
      receivedMs: number(RECEIVED),
      startedMs: number(STARTED),
      slottedMs: number(SLOTTED),
      answeredMs: number(ANSWERED),
      writtenMs: number(WRITTEN),
      bytesIn: number(BYTES_IN),
      bytesOut: number(BYTES_OUT),
      lanes: more?.lanes ?? this.#laneAt(place),
      asks: more?.asks ?? [],
      deviations: more?.deviations ?? [],
      end: ref(END),
      request: more?.request,
      response: more?.response,
    }
  }

  /** Removes calls that are too old. */
  expire(nowMs: number): void {
    const { maxAgeMs } = this.#limits()
    while (this.#first < this.#next && nowMs - this.keptMs(this.#first) >= maxAgeMs) this.#removeFirst('age')
  }

  #limit(nowMs: number): void {
    this.expire(nowMs)
    const { maxBytes } = this.#limits()
    while (this.#bytes > maxBytes) this.#removeFirst('bytes')
  }

  #laneAt(place: Place): readonly LaneFacts[] {
    const id = this.#number(place, LANE_ID)
    if (id === NO_LANE) return []
    return [
      {
        hop: this.#ref(place, HOP),
        id,
        kind: 'call',
        sentMs: this.#number(place, LANE_SENT),
        firstMs: this.#number(place, LANE_FIRST),
        doneMs: this.#number(place, LANE_DONE),
        end: LANE_ENDS[this.#number(place, LANE_END)] ?? 'open',
        request: undefined,
        response: undefined,
      },
    ]
  }

  #writeRefs(refs: unknown[], at: number, call: CallFacts, more: More | undefined): void {
    refs[at + METHOD] = call.method
    refs[at + PRINCIPAL] = call.principal
    refs[at + SCOPE] = call.scope
    refs[at + REVISION] = call.revision
    refs[at + SESSION] = call.sessionId
    refs[at + CLIENT] = this.#client(call.clientInfo)
    refs[at + TRANSPORT] = call.transport
    refs[at + SERVER] = call.server
    refs[at + ORIGINAL] = call.original
    refs[at + NAME] = call.name
    refs[at + TRACE] = call.traceId
    refs[at + END] = call.end
    refs[at + HOP] = call.lanes[0] && this.#known(call.lanes[0].hop)
    refs[at + MORE] = more
  }

  /** Returns the members that are shown, one object while the same host calls: what a host says about itself may be large. */
  #client(info: unknown): unknown {
    if (info === this.#lastInfo) return this.#lastClient
    const [name, version] = [memberOf(info, 'name'), memberOf(info, 'version')]
    this.#lastInfo = info
    this.#lastClient = info && {
      ...(typeof name === 'string' && { name: firstCharacters(name, CLIENT_CHARACTERS) }),
      ...(typeof version === 'string' && { version: firstCharacters(version, CLIENT_CHARACTERS) }),
    }
    return this.#lastClient
  }

  /** Returns one object for all equal hops, so that a call does not keep its closed link in memory. */
  #known({ era, revision, transport }: Hop): Hop {
    for (const hop of this.#hops) if (hop.revision === revision && hop.transport === transport && hop.era === era) return hop
    const hop: Hop = { era, revision, transport }
    this.#hops.push(hop)
    return hop
  }

  #removeFirst(reason: 'bytes' | 'age'): void {
    const place = this.#first++
    this.#bytes -= this.#number(place, SIZE)
    const block = this.#blockOf(place)
    if (block !== undefined) {
      const at = refAt(place)
      const more = this.#ref(place, MORE)
      if (more !== undefined) for (const message of messagesOf(more)) message.release()
      block.refs[at + MORE] = block.refs[at + NAME] = block.refs[at + END] = undefined
    }
    if (this.#first - this.#base === CALLS_PER_BLOCK) this.#closeBlock()
    this.#evicted(reason)
  }

  #openBlock(): Block {
    const block = this.#free.pop() ?? {
      numbers: new Float64Array(CALLS_PER_BLOCK * NUMBERS),
      refs: Array<unknown>(CALLS_PER_BLOCK * REFS).fill(undefined),
    }
    this.#blocks.push(block)
    return block
  }

  #closeBlock(): void {
    const block = this.#blocks.shift()
    this.#base += CALLS_PER_BLOCK
    if (block === undefined || this.#free.length >= MAX_FREE_BLOCKS) return
    block.refs.fill(undefined)
    this.#free.push(block)
  }

  #blockOf(place: Place): Block | undefined {
    return this.#blocks[Math.floor((place - this.#base) / CALLS_PER_BLOCK)]
  }
  #number(place: Place, column: number): number {
    return this.#blockOf(place)?.numbers[numberAt(place) + column] ?? NEVER
  }
  #ref<T>(place: Place, column: Column<T>): T {
    // Cast: `#writeRefs` writes a value of the column's type, and callers pass places in the ring.
    return this.#blockOf(place)?.refs[refAt(place) + column] as T
  }
}

/** As many characters as are shown of a host. */
const CLIENT_CHARACTERS = 100

const numberAt = (place: Place): number => (place % CALLS_PER_BLOCK) * NUMBERS
const refAt = (place: Place): number => (place % CALLS_PER_BLOCK) * REFS

const writeNumbers = (
  numbers: Float64Array,
  at: number,
  call: CallFacts,
  lane: LaneFacts | undefined,
  nowMs: number,
  size: number,
): void => {
  numbers[at + ID] = call.id
  numbers[at + AT] = call.atMs
  numbers[at + RECEIVED] = call.receivedMs
  numbers[at + STARTED] = call.startedMs
  numbers[at + SLOTTED] = call.slottedMs
  numbers[at + ANSWERED] = call.answeredMs
  numbers[at + WRITTEN] = call.writtenMs
  numbers[at + BYTES_IN] = call.bytesIn
  numbers[at + BYTES_OUT] = call.bytesOut
  numbers[at + LANE_ID] = lane?.id ?? NO_LANE
  numbers[at + LANE_SENT] = lane?.sentMs ?? NEVER
  numbers[at + LANE_FIRST] = lane?.firstMs ?? NEVER
  numbers[at + LANE_DONE] = lane?.doneMs ?? NEVER
  numbers[at + LANE_END] = lane === undefined ? NO_LANE : LANE_ENDS.indexOf(lane.end)
  numbers[at + KEPT] = nowMs
  numbers[at + SIZE] = size
}

const moreOf = (call: CallFacts): More | undefined => {
  const { needsSignIn, replayOf, asks, deviations, lanes, request, response } = call
  const [lane] = lanes
  const isPlainLane = lanes.length < 2 && lane?.request === undefined && lane?.response === undefined
  const isPlain = isPlainLane && request === undefined && response === undefined && replayOf === undefined
  if (isPlain && needsSignIn === undefined && asks.length === 0 && deviations.length === 0) return undefined
  return {
    needsSignIn,
    replayOf,
    asks,
    deviations,
    lanes: isPlainLane ? undefined : lanes,
    request,
    response,
  }
}

const sizeOf = ({ name, original, end }: CallFacts, more: More | undefined): number => {
  let size = BASE_SIZE + (name?.length ?? 0) + (original?.length ?? 0) + (end?.detail?.length ?? 0)
  if (more === undefined) return size
  size += (more.lanes?.length ?? 0) * LANE_SIZE + more.asks.length * ASK_SIZE
  for (const message of messagesOf(more)) size += message.size
  return size
}
