/** One host of a simulation: connects, and again when it has lost the gateway; calls, answers questions, gives up. */
import { connectHttp, connectModernHttp, connectSse, SessionHost } from '../fakes/http-hosts.ts'
import { Tracked } from '../fakes/base-host.ts'
import { connectPipe } from '../fakes/pipe-host.ts'
import type { Host, HostOptions } from '../fake-host.ts'
import type { TestGateway } from '../gateway.ts'
import type { JsonMap, Message } from '../fakes/messages.ts'
import { endOf } from '../arena/callers.ts'
import type { End } from '../referee.ts'
import type { HostPlan, Work } from './plan.ts'

/** Time that hosts and servers take; its timers are not the gateway's. */
export type Sleep = (ms: number) => Promise<void>

/** How a call ended, and whether it was the host that did not come back in time. */
export interface Ended {
  readonly end: End
  readonly isGivenUp: boolean
  /** How many it took: its own, those with answers to questions, and those that resumed its stream. */
  readonly requests: number
}

const CONNECTING: Readonly<Record<HostPlan['transport'], (gateway: TestGateway, options: HostOptions) => Promise<Host>>> = {
  'legacy http': connectHttp,
  'legacy sse': connectSse,
  'legacy stdio': (gateway, options) => connectPipe('legacy', gateway, options),
  'modern http': connectModernHttp,
  'modern stdio': (gateway, options) => connectPipe('modern', gateway, options),
}

const RETRY_MS = 1_000
/** A host that does not get in for so long tries again from the beginning. */
const HANDSHAKE_MS = 30_000
const BROKEN: End = { type: 'broken' }

export class Player {
  readonly plan: HostPlan
  readonly #sleep: Sleep
  /** It opens broken streams again where they ended, and begins a new session for one that is not found. */
  readonly #resumes: boolean
  readonly #gateway: () => TestGateway | undefined
  #host: Promise<Host> | undefined
  /** The same, once it is let in, and how to tell its calls that it is dropped. */
  #open: Host | undefined
  readonly #dropped = new WeakMap<Host, PromiseWithResolvers<undefined>>()
  #isOver = false
  /** By the number of the call whose question it is: when questions are answered. */
  readonly #answerMs = new Map<string, number>()

  constructor(plan: HostPlan, gateway: () => TestGateway | undefined, sleep: Sleep, resumes: boolean) {
    this.plan = plan
    this.#resumes = resumes
    this.#sleep = sleep
    this.#gateway = gateway
  }

  /** Resolves once it is let in; `undefined`: it was ended before. */
  async connected(): Promise<Host | undefined> {
    while (!this.#isOver) {
      this.#host ??= this.#connect()
      const host = this.#host
      try {
        const open = await Promise.race([host, this.#sleep(HANDSHAKE_MS).then(() => Promise.reject(new Error('not let in')))])
        // It was given up by another call that had waited longer, or dropped.
        if (this.#host !== host) continue
        return (this.#open = open)
      } catch {
        if (this.#host === host) this.#host = undefined
        // It may still be let in.
        void host.then((late) => late[Symbol.asyncDispose]()).catch(() => undefined)
        await this.#sleep(RETRY_MS)
      }
    }
    return undefined
  }

  /** Never rejects. `giveUpMs`: after which the host wants no answer any more. */
  async call(host: Host, name: string, nonce: number, { how, workMs, answerMs }: Work, giveUpMs: number): Promise<Ended> {
    this.#answerMs.set(String(nonce), answerMs)
    let params: JsonMap = {
      name,
      arguments: { nonce, how, workMs },
      ...(how === 'progress' && { _meta: { progressToken: nonce } }),
    }
    let isLate = false
    let requests = 0
    const late = this.#sleep(giveUpMs).then(() => {
      isLate = true
      return undefined
    })
    for (;;) {
      const pending = host.begin('tools/call', params)
      const message = await Promise.race([pending.response.catch(() => undefined), late, this.#dropped.get(host)?.promise])
      requests += pending instanceof Tracked ? pending.requests : 1
      if (message === undefined) {
        if (isLate) pending.cancel()
        else this.#lost(host)
        return { end: BROKEN, isGivenUp: isLate, requests }
      }
      if (this.#resumes && pending instanceof Tracked && pending.status === 404 && this.#open === host) void this.drop()
      const { result } = message
      if (result?.['resultType'] !== 'input_required') return { end: this.#endOf(message, params), isGivenUp: false, requests }
      await this.#sleep(answerMs)
      const asked = Object.keys(result['inputRequests'] ?? {})
      params = {
        ...params,
        requestState: result['requestState'],
        inputResponses: Object.fromEntries(asked.map((key) => [key, { action: 'accept', content: { sure: true } }])),
      }
    }
  }

  /** Forgets its connection, as after a 404: the next call connects again. */
  async drop(): Promise<void> {
    const open = this.#open
    if (open === undefined) return
    this.#host = this.#open = undefined
    this.#dropped.get(open)?.resolve(undefined)
    await open[Symbol.asyncDispose]()
  }

  /** Ends its session by DELETE; resolves with the session where the gateway has agreed. */
  async leave(): Promise<SessionHost | undefined> {
    const open = this.#open
    if (!(open instanceof SessionHost) || open.session === undefined) return undefined
    this.#host = this.#open = undefined
    const late = this.#sleep(HANDSHAKE_MS).then(() => undefined)
    const status = await Promise.race([open.request('DELETE').then((reply) => reply.status), late]).catch(() => undefined)
    this.#dropped.get(open)?.resolve(undefined)
    await open[Symbol.asyncDispose]()
    return status === 200 ? open : undefined
  }

  async end(): Promise<void> {
    this.#isOver = true
    await this.drop()
  }

  #endOf(message: Message, params: JsonMap): End {
    const end = endOf(message)
    // Where the input rounds take too long, the gateway answers with an error for the model: no answer of a server.
    if (message.result?.['isError'] === true && Number.isNaN(end.type === 'answered' ? end.nonce : 0))
      return { type: 'failed', kind: 'timeout', executed: 'unknown' }
    // The round before had reached the server.
    if (params['requestState'] !== undefined && end.type === 'failed' && end.kind.startsWith('rpc'))
      return { ...end, executed: 'unknown' }
    return end
  }

  /** A stream ended without an answer: hosts with one connection for all have lost it. */
  #lost(host: Host): void {
    const isOne = this.plan.transport === 'legacy sse' || this.plan.transport.endsWith('stdio')
    if (isOne && this.#open === host) void this.drop()
  }

  async #connect(): Promise<Host> {
    const gateway = this.#gateway()
    if (gateway === undefined) throw new Error('the gateway is away')
    const capabilities = this.plan.canBeAsked ? { elicitation: {} } : {}
    const resumes = this.#resumes ? () => this.#sleep(RETRY_MS) : undefined
    const host = await CONNECTING[this.plan.transport](gateway, { capabilities, resumes })
    host.answer('elicitation/create', async ({ message }) => {
      await this.#sleep(this.#answerMs.get(String(message)) ?? 0)
      return { action: 'accept', content: { sure: true } }
    })
    this.#dropped.set(host, Promise.withResolvers())
    return host
  }
}
