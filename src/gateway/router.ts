/**
 * One call to one server: finds the owner in the catalog snapshot, puts the original name in, and the exposed URIs back into
 * the result (BRIDGING 2.5, 3.3–3.6, 4).
 */
import { isPerUser } from '../auth/oauth/options.ts'
import { findAppTemplate, findAppTool } from '../catalog/view/apps.ts'
import { servesApps } from '../catalog/catalog.ts'
import { fillArguments } from '../catalog/curate/curated-arguments.ts'
import { correctReadHints } from '../catalog/view/caching.ts'
import type { CallRule, ResultLimit } from '../catalog/curation.ts'
import { exposeResult } from '../catalog/view/expose-result.ts'
import type { BlockPlace } from '../wire/message/content-blocks.ts'
import { exposedUri, findOriginal, findPrompt, findResource, findTemplateRef, findTool } from '../catalog/view/routes.ts'
import type { Route } from '../catalog/view/routes.ts'
import { unaliasArguments } from '../catalog/names/unalias.ts'
import type { View } from '../catalog/view/view.ts'
import type { Downstream } from '../downstream/downstream.ts'
import type { Fleet } from '../downstream/fleet.ts'
import { withoutModernMembers, withoutModernMeta } from '../era/host/legacy-host.ts'
import { project } from '../era/host/projections.ts'
import { complete, isBridge, Refusal, ServerError, SHARED_PRINCIPAL } from '../rpc/call.ts'
import { noteDenial, noteRoute } from '../rpc/record.ts'
import type { Call, Caller, InputRequired, Outcome, Resume } from '../rpc/call.ts'
import type { DeviationName } from '../rpc/fidelity.ts'
import { declaresApps, UI_EXTENSION } from '../wire/protocol/apps.ts'
import { Failure } from '../wire/message/failure.ts'
import { META } from '../wire/protocol/meta.ts'
import { elementsAt } from '../wire/message/members.ts'
import { ambiguousParam } from '../wire/headers/param-headers.ts'
import { Payload } from '../wire/message/payload.ts'
import { isAtLeast, isModernRevision, OLDEST_LEGACY } from '../wire/protocol/revisions.ts'
import { withoutTasks } from '../wire/protocol/tasks.ts'
import { isAsItCame, isTranslated, mayBeUnlisted } from './lists/bridges.ts'
import { Unconfirmed } from './rounds/confirm.ts'
import type { Feed } from './lists/feed.ts'
import type { LateNames, LateOwner } from './names/late-names.ts'
import { isOverflow } from './limits/overflow.ts'
import type { Overflow } from './limits/overflow.ts'
import type { Rates } from './limits/rates.ts'
import { limitResult } from './limits/result-limit.ts'
import type { OpenedRound, Rounds } from './rounds/rounds.ts'
import type { SignInRounds } from './rounds/sign-in.ts'
import type { Tasks } from './tasks/tasks.ts'
import { UnlistedNames } from './names/unlisted-names.ts'
import { URL_REQUIRED, urlRequired, visitIdsIn, withoutVisits } from './rounds/url-required.ts'
import { askerOf, isNamespaced, mayRenameUris, wordRequests } from './rounds/wording.ts'

/** Where results of a method hold URIs. */
const PLACES: Readonly<Record<string, BlockPlace>> = {
  'tools/call': 'content',
  'prompts/get': 'messages',
  'resources/read': 'contents',
}
const MAX_COMPLETIONS = 100
/** Where what is called back by a sealed state is listed. */
const LISTED = { 'tools/call': 'tools', 'prompts/get': 'prompts', 'resources/read': 'resources' } as const

/** What a server of `trusted: false` is not told of the host's trace: it may name users (BRIDGING 2.6). */
const UNTRUSTED: readonly string[] = ['baggage']

const withheldFrom = ({ options }: Downstream): readonly string[] | undefined =>
  options.trusted === false ? UNTRUSTED : undefined

export class Router {
  readonly #feed: Feed
  readonly #late: LateNames
  readonly #unlisted: UnlistedNames
  readonly #rounds: Rounds
  readonly #signIns: SignInRounds
  readonly #tasks: Tasks
  readonly #rates: Rates
  readonly #overflow: Overflow
  readonly #fleet: Pick<Fleet, 'for'>

  constructor(
    feed: Feed,
    late: LateNames,
    rounds: Rounds,
    signIns: SignInRounds,
    tasks: Tasks,
    rates: Rates,
    overflow: Overflow,
    fleet: Pick<Fleet, 'for'>,
  ) {
    this.#feed = feed
    this.#late = late
    this.#unlisted = new UnlistedNames({ feed, ownerOf: (call) => late.byForm(call) })
    this.#rounds = rounds
    this.#signIns = signIns
    this.#tasks = tasks
    this.#rates = rates
    this.#overflow = overflow
    this.#fleet = fleet
  }

  async forward(call: Call): Promise<Outcome> {
    if (call.method === 'resources/read' && isOverflow(call.target)) return this.#readOverflow(call)
    const isModern = call.caller.session === undefined
    const round = isModern ? this.#rounds.open(call) : undefined
    let view = this.#feed.viewOf(call.caller)
    let route = round === undefined ? this.#lookUp(call, view) : this.#goBack(call, round, view)
    if (route === undefined) {
      const late = await (round === undefined ? this.#findLater(call) : this.#goBackLater(call, round))
      if ('kind' in late) return late
      route = late
      view = this.#feed.viewOf(call.caller)
    }
    const downstream = this.#fleet.for(route.serverKey, call.caller.principal)
    if (downstream === undefined) throw new Refusal(-32602, 'invalid or expired requestState')
    noteRoute(call, route.serverKey, route.original, route.entry !== undefined)
    if (view.toolset?.confirmsAny === true && call.isConfirmed !== true) refuseUnconfirmed(call, route, view)
    // A legacy host that was asked within its call goes on with that call.
    if (this.#rates.limitsRoutes && (isModern || call.resume === undefined))
      this.#rates.checkRoute(call, route.serverKey, route.original)
    const fault = this.#restore(call, route, downstream, view)
    if (fault !== undefined) {
      noteDenial(call, 'invalid')
      return complete(Payload.of({ content: [{ type: 'text', text: fault }], isError: true }))
    }
    const isRaw = isAsItCame(call.caller, downstream)
    const asking = this.#tasks.asked(isRaw ? { ...call, isAsItCame: true } : call, downstream, view)
    const { entry } = route
    const rule = entry?.rule
    const resume = round?.resume ?? call.resume ?? freshResponses(call, isModern)
    let routed: Call = {
      ...call,
      caller: callerFor(downstream, call.caller, view, rule),
      target: route.original,
      paramHeaders: rule?.paramHeaders ?? entry?.paramHeaders ?? [],
      unknownHeaders: rule === undefined ? call.unknownHeaders : withoutHidden(call.unknownHeaders, rule),
      totalMs: rule?.totalMs,
      resume: withoutVisits(resume),
      isAsItCame: isRaw,
      takesStreams: call.takesStreams === true && rule?.result === undefined && passesAsItCame(call, downstream),
      ask: asking.ask,
      withheld: withheldFrom(downstream),
    }
    let outcome: Outcome
    try {
      if (this.#signIns.isOurs(routed.resume)) {
        const back = await this.#signIns.resume(routed, downstream)
        if ('outcome' in back) return back.outcome
        routed = { ...routed, resume: back.resume }
      }
      outcome = isSignInTool(route) ? await downstream.signedIn() : await this.#tasks.runs.run(routed, entry, downstream)
    } catch (error) {
      outcome = this.#signIns.isNeeded(error)
        ? await this.#signIns.ask(error, call, routed, downstream)
        : this.#failed(asking.refused(error), call, resume, downstream, view)
    }
    if (outcome.kind === 'input_required') return this.#asking(outcome, call, route, downstream, view)
    if (outcome.kind === 'task') this.#tasks.created(outcome.result, call, downstream)
    else if (isModern) asking.refuseIfMissing(outcome)
    return this.#expose(outcome, call, route, downstream, view)
  }

  /** A request at a bridge that names nothing of the catalog: its server's to answer (B277). */
  async relay(call: Call): Promise<Outcome> {
    const { caller, method } = call
    const downstream = caller.scope.server === undefined ? undefined : this.#fleet.for(caller.scope.server, caller.principal)
    if (downstream === undefined) throw new Refusal(-32601, `Method not found: ${method}`, { status: 404 })
    noteRoute(call, downstream.options.key, method)
    // A modern server is told the level with each request.
    if (method === 'logging/setLevel' && downstream.eraFor(caller) === 'modern') return complete(Payload.of({}))
    const routed: Call = { ...call, isAsItCame: isAsItCame(caller, downstream), withheld: withheldFrom(downstream) }
    const outcome = await downstream.handle({ ...routed, ask: this.#tasks.asked(routed, downstream).ask })
    const { kind, result } = outcome
    if (
      kind === 'complete' &&
      result instanceof Payload &&
      isTranslated(call.caller, downstream) &&
      caller.session !== undefined
    ) {
      withoutModernMembers(result)
      withoutModernMeta(result)
    }
    return outcome
  }

  /** What the host is asked, in its words; a modern one brings back where the call goes on. */
  #asking(outcome: InputRequired, call: Call, route: Route, downstream: Downstream, view: View): Outcome {
    const isModern = call.caller.session === undefined
    const note = noteOf(call, downstream)
    const refused = wordRequests(outcome.result, askerOf(downstream, view, call.caller), call.caller, note, ({ method }) => {
      throw new Failure('protocol', `asks for undeclared input: ${method}`)
    })
    if (isModern) return this.#rounds.close(outcome, call, route.serverKey, route.original)
    note('askedByRequest')
    return { ...outcome, refused, totalMs: route.entry?.rule?.totalMs ?? downstream.options.timeouts.totalMs }
  }

  /** Owner of what the call names, where only a server that is not known yet can be it; or what its caller is asked before. */
  async #findLater(call: Call): Promise<Route | Outcome> {
    this.#refuseUngranted(call)
    const asked = await this.#awaitName(call)
    if (asked !== undefined) return asked
    const late =
      this.#lookUp(call) ??
      this.#signIns.routeOf(call.resume) ??
      (await this.#lookUpAgain(call)) ??
      this.#unlisted.routeOf(call) ??
      this.#bridged(call)
    if (late !== undefined) return late
    noteDenial(call, 'unknown')
    throw unknown(call)
  }

  async #lookUpAgain(call: Call): Promise<Route | undefined> {
    await this.#unlisted.refreshed(call)
    return this.#lookUp(call)
  }

  /**
   * At a bridge a name that no list shows is its server's to answer, unless a rule of the configuration is about it (BRIDGING 3.21).
   */
  #bridged(call: Call): Route | undefined {
    const { scope, principal } = call.caller
    const downstream = scope.server === undefined ? undefined : this.#fleet.for(scope.server, principal)
    if (downstream === undefined || !mayBeUnlisted(call, downstream, this.#feed.viewOf(call.caller))) return undefined
    const ref = call.method === 'completion/complete' ? call.params.object('ref') : undefined
    const original = call.target ?? ref?.text('name') ?? ref?.text('uri') ?? ''
    return { serverKey: downstream.options.key, original, entry: undefined }
  }

  /**
   * Waits until what the call names may be looked up again. Throws the failure of the server that keeps it from being known; one
   * that a sign-in mends is asked for, which is the outcome.
   */
  async #awaitName(call: Call, resume = call.resume): Promise<Outcome | undefined> {
    const owner = this.#late.ownerOf(call)
    try {
      if (owner !== undefined && this.#signIns.isOurs(resume)) {
        const back = await this.#signIns.resume({ ...call, resume }, owner.downstream)
        if ('outcome' in back) return back.outcome
      }
      await this.#late.known(call, owner)
      return undefined
    } catch (error) {
      if (owner === undefined) throw error
      noteRoute(call, owner.downstream.options.key, owner.original)
      if (!this.#signIns.isNeeded(error)) throw error
      return this.#askToSignIn(error, call, owner)
    }
  }

  async #askToSignIn(error: Failure, call: Call, { downstream, original }: LateOwner): Promise<Outcome> {
    const route: Route = { serverKey: downstream.options.key, original, entry: undefined }
    const outcome = await this.#signIns.ask(error, call, { ...call, target: original }, downstream)
    if (outcome.kind !== 'input_required') return outcome
    return this.#asking(outcome, call, route, downstream, this.#feed.viewOf(call.caller))
  }

  /** A retry goes to the server that was asked first, also if it was renamed; an entry hidden meanwhile does not exist. */
  #goBack(call: Call, { server, original }: OpenedRound, view = this.#feed.viewOf(call.caller)): Route | undefined {
    const kind = LISTED[call.method as keyof typeof LISTED]
    return findOriginal(view, kind, server, original)
  }

  async #goBackLater(call: Call, round: OpenedRound): Promise<Route | Outcome> {
    if (this.#fleet.for(round.server, call.caller.principal) === undefined)
      throw new Refusal(-32602, 'invalid or expired requestState')
    const asked = await this.#awaitName(call, round.resume)
    if (asked !== undefined) return asked
    const late = this.#goBack(call, round) ?? this.#signIns.routeOf(round.resume)
    if (late !== undefined) return late
    const unlisted = this.#unlisted.routeOf(call)
    if (unlisted?.serverKey === round.server && unlisted.original === round.original) return unlisted
    noteDenial(call, 'unknown')
    throw unknown(call)
  }

  #readOverflow(call: Call): Outcome {
    const part = this.#overflow.read(call.caller.principal, call.target ?? '')
    if (part === undefined) {
      noteDenial(call, 'unknown')
      throw unknown(call, ' (kept for limits.result_ttl, within limits.results)')
    }
    return complete(part)
  }

  /** What only the scopes of a token hide is refused with the scopes it takes, before anything else is said (BRIDGING 6.1; B238). */
  #refuseUngranted(call: Call): void {
    if (call.caller.scope.granted === undefined) return
    const { granted, ...scope } = call.caller.scope
    const view = this.#feed.viewOf({ ...call.caller, scope })
    const route = this.#lookUp(call, view)
    const grants = this.#feed.grantsOf({ ...scope, granted })
    if (route === undefined || grants === undefined) return
    const scopes = grants.needed(route.serverKey, call.method === 'tools/call' && view.isWrite(call.target ?? ''))
    noteDenial(call, 'forbidden', scopes.join(' '))
    // A host that asks for these alone, as hosts before 2026-07-28 do, keeps what it had.
    const all = [...new Set([...granted.split(' '), ...scopes])].filter((scope) => scope !== '')
    throw new Refusal(-32602, `insufficient_scope: this takes ${scopes.join(' ')}`, { status: 403, scopes: all })
  }

  #lookUp(call: Call, view = this.#feed.viewOf(call.caller)): Route | undefined {
    if (call.method === 'completion/complete') {
      const ref = call.params.object('ref')
      const type = ref?.text('type')
      const name = ref?.text(type === 'ref/prompt' ? 'name' : 'uri')
      if (name === undefined) throw new Refusal(-32602, 'params.ref must name a prompt or a resource')
      return type === 'ref/prompt' ? findPrompt(view, name) : findTemplateRef(view, name)
    }
    if (call.target === undefined)
      throw new Refusal(-32602, `params.${call.method === 'resources/read' ? 'uri' : 'name'} must be a string`)
    if (call.method === 'prompts/get') return findPrompt(view, call.target)
    const isTool = call.method === 'tools/call'
    const route = isTool ? findTool(view, call.target) : findResource(view, call.target)
    if (route !== undefined || !declaresApps(call.caller.capabilities)) return route
    const own = isTool ? findAppTool(view, view.apps, call.target) : findAppTemplate(view, view.apps, call.target)
    if (own !== undefined) this.#noteAppName(call, own, view)
    return own
  }

  /** B171: written down with both names. */
  #noteAppName(call: Call, { serverKey, entry }: Route, view: View): void {
    const exposed = view.catalog.lists.tools.find((row) => row.entry === entry)?.exposed
    this.#fleet.for(serverKey, call.caller.principal)?.fidelity.note('appName', call, { name: call.target, exposed })
  }

  /** Writes what the server calls it, and what it is to be called with, into the params; what is wrong with the arguments. */
  #restore(call: Call, { original, entry }: Route, downstream: Downstream, view: View): string | undefined {
    const { params } = call
    if (call.method === 'completion/complete') {
      const ref = params.object('ref')
      const revision = downstream.revisionFor(call.caller)
      const isOld = revision !== undefined && !isAtLeast(revision, '2025-06-18') && isAtLeast(call.caller.revision, '2025-06-18')
      if (isOld && params.has('context')) downstream.fidelity.note('completionContext', call)
      ref?.set(ref.text('type') === 'ref/prompt' ? 'name' : 'uri', JSON.stringify(original))
    } else if (original !== call.target) params.set(call.method === 'resources/read' ? 'uri' : 'name', JSON.stringify(original))
    if (call.method !== 'tools/call') return undefined
    const { options } = downstream
    const args = params.raw('arguments')
    const isAliased = args !== undefined && options.unaliasArguments && isNamespaced(downstream, view)
    const plain = isAliased ? unaliasArguments(args, options.prefix) : args
    const mirrored = entry?.rule?.paramHeaders ?? entry?.paramHeaders ?? []
    const ambiguous = args === undefined || mirrored.length === 0 ? undefined : ambiguousParam(mirrored, args)
    if (ambiguous !== undefined) throw new Refusal(-32600, ambiguous, { status: 400 })
    if (entry?.rule !== undefined) return fillIn(params, plain, entry.rule)
    if (plain !== undefined && plain !== args) params.set('arguments', plain)
    return undefined
  }

  #expose(outcome: Outcome, call: Call, route: Route, downstream: Downstream, view: View): Outcome {
    let { result } = outcome
    if (!(result instanceof Payload)) return outcome
    const isAtBridge = isBridge(call.caller.scope)
    if (call.caller.session !== undefined && downstream.eraFor(call.caller) === 'modern') {
      withoutModernMeta(result)
      if (isAtBridge) withoutModernMembers(result)
    }
    // What peers of one era say to each other at a bridge is theirs alone.
    if (isAtBridge && !isTranslated(call.caller, downstream)) return this.#limitedOnly(outcome, result, route, call)
    if (call.method === 'completion/complete') {
      if (limitCompletions(result)) downstream.fidelity.note('completionCut', call)
    } else if (outcome.kind === 'complete') {
      const place = PLACES[call.method]
      if (call.method === 'resources/read') {
        refuseEmpty(result, call, route, downstream, view)
        if (call.caller.session === undefined) correctReadHints(result, isPersonal(call.caller, downstream))
      }
      if (mayRenameUris(downstream, view) && place !== undefined)
        exposeResult(result, place, exposer(call, route, downstream, view))
      const limit = route.entry?.rule?.result
      if (limit !== undefined) result = this.#limited(result, limit, call)
    }
    if (call.caller.session === undefined && view.catalog.sources.length > 1)
      result.setIn('_meta', META.server, JSON.stringify(downstream.options.key))
    if (outcome.kind !== 'complete') return outcome
    const projected = project(result, call, downstream.fidelity, () => view.outputFormOf(route.serverKey, route.entry))
    return projected === outcome.result ? outcome : { ...outcome, result: projected }
  }

  #limitedOnly(outcome: Outcome, result: Payload, { entry }: Route, call: Call): Outcome {
    const limit = outcome.kind === 'complete' && call.method !== 'completion/complete' ? entry?.rule?.result : undefined
    return limit === undefined || outcome.kind !== 'complete'
      ? outcome
      : { ...outcome, result: this.#limited(result, limit, call) }
  }

  #limited(result: Payload, limit: ResultLimit, { caller }: Call): Payload {
    return limitResult(result, limit, (text, partBytes) => this.#overflow.keep(caller.principal, text, partBytes))
  }

  /** A server's own error, with the URI in the spelling of the host; in 2024-11-05 a missing completion is an empty one (B112). */
  #failed(error: unknown, call: Call, resume: Resume | undefined, downstream: Downstream, view: View): Outcome {
    if (!(error instanceof ServerError)) throw error
    const { caller } = call
    if (isBridge(caller.scope) && !isTranslated(caller, downstream)) {
      if (error.code === URL_REQUIRED) for (const id of visitIdsIn(error)) downstream.sentAway(id, caller.session)
      throw error
    }
    if (error.code === URL_REQUIRED)
      return urlRequired(
        error,
        call,
        resume,
        askerOf(downstream, view, call.caller),
        (deviation) => downstream.fidelity.note(deviation, call),
        (id) => downstream.sentAway(id, call.caller.session),
      )
    // Completion began without a capability; later its own refusal is the answer (BRIDGING 3.22).
    const isBeforeCapability = downstream.revisionFor(call.caller) === OLDEST_LEGACY
    if (isBeforeCapability && call.method === 'completion/complete' && error.code === -32601) {
      downstream.fidelity.note('completionNone', call)
      return complete(Payload.of({ completion: { values: [] } }))
    }
    const data = error.error.object('data')
    const isNotFound = error.code === -32002 || (error.code === -32602 && data?.has('uri') === true)
    if (call.method === 'resources/read' && isNotFound) {
      if ((error.code === -32002) === (call.caller.session === undefined)) downstream.fidelity.note('notFound', call)
      // What is no object has no place for it.
      if (data !== undefined || isNothing(error.error.raw('data')) || call.caller.session === undefined)
        error.error.setIn('data', 'uri', JSON.stringify(call.target))
    } else if (data !== undefined && mayRenameUris(downstream, view)) {
      const uri = data.text('uri')
      if (uri !== undefined) data.set('uri', JSON.stringify(exposedUri(view, downstream.options, uri)))
    }
    throw error
  }
}

/** The tool that stands in the place of a server's lists until someone has signed in; never the server's own of that name. */
const isSignInTool = ({ entry, isSignIn = entry?.isSignIn }: Route): boolean => isSignIn === true

/** Whatever way led to the route, and whatever state was brought: a person agrees first (T-06). */
const refuseUnconfirmed = ({ method }: Call, { entry }: Route, view: View): void => {
  if (method === 'tools/call' && entry !== undefined && view.confirms(entry)) throw new Unconfirmed()
}

/** Whether the result of this call is one that no projection looks into: it may leave before all of it has come. */
const passesAsItCame = ({ method, caller }: Call, downstream: Downstream): boolean =>
  method === 'tools/call' &&
  (caller.session === undefined || (downstream.eraFor(caller) === 'legacy' && isAtLeast(caller.revision, '2025-06-18')))

/** Made where something deviates, and not within `forward`: a closure there costs every call, in memory that outlives it, a third more. */
/** Whether the answer may be for this caller alone: it came with a credential, or the server knows each caller by one (T-30). */
const isPersonal = ({ principal }: Caller, { options }: Downstream): boolean =>
  principal !== SHARED_PRINCIPAL || isPerUser(options.credential)

const noteOf =
  (call: Call, { fidelity }: Downstream) =>
  (deviation: DeviationName): void =>
    fidelity.note(deviation, call)

/** The host's own spelling for what it asked for, the exposed form for everything else. */
const exposer = (call: Call, route: Route, { options }: Downstream, view: View): ((uri: string) => string) => {
  const isRead = call.method === 'resources/read'
  return (uri) => (isRead && uri === route.original && call.target !== undefined ? call.target : exposedUri(view, options, uri))
}

/** Writes the arguments under the rule into the params; what is wrong with them. */
const fillIn = (params: Payload, args: Buffer | undefined, rule: CallRule): string | undefined => {
  const curated = fillArguments(args, rule.args)
  if ('refused' in curated) throw new Refusal(-32600, curated.refused, { status: 400 })
  if ('fault' in curated) return curated.fault
  if (curated.filled !== undefined) params.set('arguments', curated.filled)
  return undefined
}

/** The caller as this server is to see it for this call. */
const callerFor = ({ options }: Downstream, caller: Caller, { catalog }: View, rule: CallRule | undefined): Caller => {
  const seen = declaresApps(caller.capabilities) && !servesApps(options, catalog) ? withoutApps(caller) : caller
  return rule?.result === undefined ? seen : { ...seen, capabilities: withoutTasks(seen.capabilities) }
}

/** A header of a hidden argument is ours to write. */
const withoutHidden = (headers: Call['unknownHeaders'], { hiddenHeaders }: CallRule): Call['unknownHeaders'] =>
  hiddenHeaders.some((name) => headers[name] !== undefined)
    ? Object.fromEntries(Object.entries(headers).filter(([name]) => !hiddenHeaders.includes(name)))
    : headers

/** A server whose apps are switched off is not told that the host runs any (BRIDGING 3.16 rule 4). */
const withoutApps = (caller: Caller): Caller => {
  const extensions = Object.entries(caller.capabilities['extensions'] as object).filter(([name]) => name !== UI_EXTENSION)
  return { ...caller, capabilities: { ...caller.capabilities, extensions: Object.fromEntries(extensions) } }
}

/** `inputResponses` without a state start afresh; a modern server may still want them (BRIDGING 3.2). */
const freshResponses = (call: Call, isModern: boolean): Call['resume'] => {
  const responses = isModern ? call.params.object('inputResponses') : undefined
  return responses === undefined ? undefined : { state: undefined, responses: responses.fresh() }
}

const unknown = (call: Call, why = ''): Refusal => {
  if (call.method === 'tools/call') return new Refusal(-32602, `Unknown tool: ${call.target}`)
  if (call.method === 'prompts/get') return new Refusal(-32602, `Unknown prompt: ${call.target}`)
  if (call.method === 'completion/complete') return new Refusal(-32602, 'Unknown prompt or resource template in params.ref')
  const code = isModernRevision(call.caller.revision) ? -32602 : -32002
  return new Refusal(code, `Resource not found: ${call.target}${why}`, { data: { uri: call.target } })
}

/** Legacy servers answer emptily for what they do not have; what no list names is then not found (BRIDGING 3.4; B103). */
const refuseEmpty = (result: Payload, call: Call, route: Route, downstream: Downstream, view: View): void => {
  if (downstream.eraFor(call.caller) !== 'legacy' || !/^\[\s*\]$/.test(result.raw('contents')?.toString() ?? '')) return
  const isListed =
    route.entry !== undefined ||
    view.bare.resources.has(route.original) ||
    view.bare.patterns.some(({ row }) => row.server.key === route.serverKey)
  if (!isListed) throw unknown(call)
}

/** B111: at most a hundred values, as they came; true if there were more. */
const limitCompletions = (result: Payload): boolean => {
  const completion = result.object('completion')
  const list = completion?.member('values')
  const values = list === undefined ? [] : elementsAt(result.bytes, list.start)
  if (completion === undefined || list === undefined || values.length <= MAX_COMPLETIONS) return false
  completion.replace({ start: values[MAX_COMPLETIONS - 1].end, end: list.end - 1 }, '')
  completion.set('hasMore', 'true')
  return true
}

const isNothing = (json: Buffer | undefined): boolean => json === undefined || json.toString() === 'null'
