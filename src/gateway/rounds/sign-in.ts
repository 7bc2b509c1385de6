/**
 * Calls that fail because a sign-in or a scope is missing: the host is asked to show the sign-in link, in the form of its era, and the
 * call continues afterwards (BRIDGING 6.4; B239, B248), like a round of the server.
 */
import type { SignIn, SignInEnd, SignIns } from '../../auth/outbound/sign-ins.ts'
import type { Purpose, Seal } from '../../auth/seal.ts'
import type { Route } from '../../catalog/view/routes.ts'
import type { Downstream } from '../../downstream/downstream.ts'
import { SIGN_IN_TOOL } from '../../downstream/lists/sign-in-tool.ts'
import { acceptsUrls, elicitationIdFor } from '../../era/questions.ts'
import { ServerError, toolText } from '../../rpc/call.ts'
import type { Call, Caller, Outcome, Resume, StateMaker } from '../../rpc/call.ts'
import { Failure } from '../../wire/message/failure.ts'
import { METHODS } from '../../wire/protocol/methods.ts'
import { join, Payload } from '../../wire/message/payload.ts'
import { URL_REQUIRED } from './url-required.ts'
import { within } from '../../time/within.ts'

const PURPOSE: Purpose<Sealed> = 'sign-in'
const KEY = 'sign-in'

/** Content of the sealed state: the sign-in, and the round of the server that it interrupts. */
interface Sealed {
  readonly id: string
  /** Server key. */
  readonly server: string
  /** The call was of the sign-in tool, which is no longer listed after the sign-in. */
  readonly isTool: boolean
  readonly state?: string
  readonly maker?: StateMaker
  readonly responses?: string
}

export class SignInRounds {
  readonly #signIns: SignIns
  readonly #seal: Seal

  constructor(signIns: SignIns, seal: Seal) {
    this.#signIns = signIns
    this.#seal = seal
  }

  /** Whether the error means that a sign-in is needed. */
  isNeeded(error: unknown): error is Failure {
    return error instanceof Failure && error.facts.signIn === true
  }

  /** Whether the retry follows a request to sign in. */
  isOurs(resume: Resume | undefined): boolean {
    return resume?.maker === 'sign-in'
  }

  /** The route of a retried call of the sign-in tool. */
  routeOf(resume: Resume | undefined): Route | undefined {
    const sealed = this.isOurs(resume) ? this.#open(resume) : undefined
    return sealed?.isTool === true
      ? { serverKey: sealed.server, original: SIGN_IN_TOOL, entry: undefined, isSignIn: true }
      : undefined
  }

  #open(resume: Resume | undefined): Sealed | undefined {
    return this.#seal.open(PURPOSE, resume?.state ?? '')
  }

  /** Waits for the sign-in within `timeouts.idle`. Returns the interrupted round, or the outcome if it was declined or failed. */
  async resume(
    call: Call,
    { options }: Downstream,
  ): Promise<{ readonly resume: Resume | undefined } | { readonly outcome: Outcome }> {
    const responses = call.resume?.responses
    const sealed = this.#open(call.resume)
    const action = responses?.object(KEY)?.text('action')
    if (action === 'decline' || action === 'cancel')
      return { outcome: ended(call, `${options.displayName}: the sign-in was declined`) }
    const signIn = sealed && this.#signIns.find(sealed.id)
    const end = signIn && (await endOf(signIn, options.timeouts.idleMs, call.signal))
    if (end === 'failed') return { outcome: ended(call, `Signing in to ${options.displayName} did not work.`) }
    if (sealed?.state === undefined && sealed?.responses === undefined) return { resume: undefined }
    const own = sealed.responses === undefined ? undefined : Payload.at(Buffer.from(sealed.responses))
    return { resume: { state: sealed.state, maker: sealed.maker, responses: own } }
  }

  /** The outcome that asks this host to sign in; throws if the host can only get an error. `routed`: the call for the server. */
  async ask(failure: Failure, call: Call, routed: Call, { options, credential }: Downstream): Promise<Outcome> {
    const interactive = credential?.interactive
    const { resume } = routed
    const { caller } = call
    if (interactive === undefined || interactive.principal !== caller.principal) throw failure.at(options)
    const { signIn, url } = await this.#signIns.ask(interactive, options.displayName)
    if (call.record !== undefined) call.record.needsSignIn = true
    const message = `Sign in to ${options.displayName} is needed.`
    if (!acceptsUrls(caller)) {
      if (call.method !== 'tools/call') throw failure.at(options)
      return ended(call, `Sign in to ${options.displayName} is needed: open ${url}`)
    }
    if (caller.session !== undefined && call.ask === undefined) throw this.#required(caller, signIn, options.key, url, message)
    if (caller.session === undefined && METHODS[call.method]?.mayAskInput !== true) throw failure.at(options)
    const sealed: Sealed = {
      id: signIn.id,
      server: options.key,
      isTool: routed.target === SIGN_IN_TOOL,
      ...(resume?.state !== undefined && { state: resume.state }),
      ...(resume?.maker !== undefined && { maker: resume.maker }),
      ...(resume?.responses !== undefined && { responses: join(resume.responses.parts()).toString() }),
    }
    const question = { method: 'elicitation/create', params: { mode: 'url', message, url } }
    const result = Payload.of({ resultType: 'input_required', inputRequests: { [KEY]: question } })
    return { kind: 'input_required', result, state: this.#seal.seal(PURPOSE, sealed), maker: 'sign-in' }
  }

  /** Error -32042 for a legacy host that cannot be asked now: it shows the URL, is notified of the end, and calls again. */
  #required({ session }: Caller, signIn: SignIn, key: string, url: string, message: string): ServerError {
    const elicitationId = elicitationIdFor(session?.id ?? '', key, signIn.id)
    signIn.onEnd((end) => {
      if (end === 'done') session?.notify('notifications/elicitation/complete', Payload.of({ elicitationId }))
    })
    const elicitations = [{ mode: 'url', elicitationId, url, message }]
    return new ServerError(URL_REQUIRED, message, Payload.of({ code: URL_REQUIRED, message, data: { elicitations } }))
  }
}

/** A tool's result with the text for the model; throws `Failure` for other methods. */
const ended = ({ method }: Call, text: string): Outcome => {
  if (method !== 'tools/call') throw new Failure('auth_required', text, { executed: 'no' })
  return toolText(text, true)
}

/** The end of the sign-in; `undefined`: not in time, or the call was cancelled. */
const endOf = (signIn: SignIn, withinMs: number, signal: Call['signal']): Promise<SignInEnd | undefined> => {
  const { promise, resolve } = Promise.withResolvers<SignInEnd | undefined>()
  const onAbort = (): void => resolve(undefined)
  signal.addEventListener('abort', onAbort, { once: true })
  signIn.onEnd(resolve)
  return within(withinMs, promise).finally(() => signal.removeEventListener('abort', onAbort))
}
