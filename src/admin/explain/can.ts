/** Whether a caller may make a call, and which rule decides: the policy, toolsets and confirmations, without making the call. */
import type { Running } from '../../app/running.ts'
import { LOCAL } from '../../auth/identity.ts'
import type { Identity } from '../../auth/identity.ts'
import { principalOf } from '../../auth/inbound/static-tokens.ts'
import { findPrompt, findResource, findTool } from '../../catalog/view/routes.ts'
import { ownCall, SHARED_PRINCIPAL } from '../../rpc/call.ts'
import type { Call, Caller, CallerFacts } from '../../rpc/call.ts'
import { Payload } from '../../wire/message/payload.ts'
import { MODERN } from '../../wire/protocol/revisions.ts'
import { AdminRefusal } from '../refusal.ts'
import { isJsonObject, parseJsonObject } from '../../values/json-object.ts'
import { explain } from './why.ts'

export interface CanQuestion {
  readonly principal: string
  /** Exposed name of a tool or prompt, or a URI. */
  readonly name: string
  /** JSON object, as text. */
  readonly args: string
  readonly toolset: string | undefined
  readonly facts: CallerFacts
}

export type CanEnd =
  | {
      readonly kind: 'judged'
      readonly method: string
      readonly server: string
      readonly original: string
      readonly decision: 'allow' | 'deny' | 'confirm'
      /** Path of the option that decides; absent: none forbids it. */
      readonly rule?: string
      readonly reason?: string | undefined
      /** Why the rule could not be evaluated. */
      readonly detail?: string | undefined
      /** Whether the lists of the caller contain it. */
      readonly isListed: boolean
    }
  /** `hiddenBy`: the option that hides it from this caller. */
  | { readonly kind: 'unknown'; readonly hiddenBy: string | undefined; readonly near: readonly string[] }
  | { readonly kind: 'no toolset' }

const KINDS = [
  { method: 'tools/call', kind: 'tools', find: findTool },
  { method: 'prompts/get', kind: 'prompts', find: findPrompt },
  { method: 'resources/read', kind: 'resources', find: findResource },
] as const

export const canCall = async (running: Running, question: CanQuestion): Promise<CanEnd> => {
  const { gateway, fleet, configuration } = running
  const { principal, name, toolset, facts } = question
  const tokens = configuration.host.auth?.tokens ?? []
  const token = tokens.find(({ id }) => principalOf(id) === principal)
  const identity: Identity = { ...LOCAL, principal, toolsets: token?.toolsets }
  const scope = gateway.scopeFor(identity, { toolset })
  if (scope === undefined) return { kind: 'no toolset' }
  const caller: Caller = { principal, revision: MODERN, capabilities: {}, scope, session: undefined, facts }
  const view = gateway.feed.viewOf(caller)
  for (const { method, kind, find } of KINDS) {
    const route = find(view, name)
    const downstream = route && fleet.for(route.serverKey, principal)
    if (route === undefined || downstream === undefined) continue
    const verdict = await gateway.access.judge({ call: callOf(method, question, caller), route, downstream, view })
    const row = view.catalog.index[kind].get(name)
    const isIn = await gateway.access.shown(view, kind, caller)
    const isShown = row === undefined || isIn?.(row) !== false
    const common = { kind: 'judged', method, server: route.serverKey, original: route.original, isListed: isShown } as const
    const { decision = 'allow', rule, reason, detail } = verdict ?? {}
    if (decision === 'allow' && method === 'tools/call' && route.entry !== undefined && view.confirms(route.entry))
      return { ...common, decision: 'confirm', rule: `toolsets.${view.toolset?.name ?? ''}.confirm` }
    return { ...common, decision, ...(rule !== undefined && { rule }), reason, detail }
  }
  const hiddenBy = KINDS.map(({ method }) => gateway.hiddenBy(callOf(method, question, caller))).find(
    (rule) => rule !== undefined,
  )
  const near = explain(running, name, undefined)
  return { kind: 'unknown', hiddenBy, near: 'near' in near ? near.near : [] }
}

const callOf = (method: string, { name, args }: CanQuestion, caller: Caller): Call => {
  const member = method === 'resources/read' ? 'uri' : 'name'
  const params = Payload.at(Buffer.from(`{"${member}":${JSON.stringify(name)},"arguments":${args}}`))
  return ownCall({ ref: 0, method, target: name, params, caller, signal: new AbortController().signal })
}

/** Throws `AdminRefusal` for an invalid body. */
export const readQuestion = (body: string): CanQuestion => {
  const refuse = (what: string): never => {
    throw new AdminRefusal(400, 'body', what)
  }
  const members = parseJsonObject(body) ?? refuse('the body must be a JSON object')
  const text = (key: string, initial: string): string => {
    const value = members[key] ?? initial
    return typeof value === 'string' ? value : refuse(`"${key}" must be a text`)
  }
  const object = (key: string): Readonly<Record<string, unknown>> => {
    const value = members[key] ?? {}
    return isJsonObject(value) ? value : refuse(`"${key}" must be an object`)
  }
  const scopes = members['scopes'] ?? []
  if (!Array.isArray(scopes) || !scopes.every((scope) => typeof scope === 'string'))
    return refuse('"scopes" must be a list of texts')
  const name = text('name', '')
  if (name === '') return refuse('"name" is missing')
  return {
    principal: text('principal', SHARED_PRINCIPAL),
    name,
    args: JSON.stringify(object('arguments')),
    toolset: members['toolset'] === undefined ? undefined : text('toolset', ''),
    facts: { claims: object('claims'), scopes, address: text('address', ''), host: text('host', '') },
  }
}
