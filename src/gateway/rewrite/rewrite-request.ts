/** Rewrites a host's request for its server: original names, curated arguments, and the capabilities that this server may see. */
import { servesApps } from '../../catalog/catalog.ts'
import { fillArguments } from '../../catalog/curate/curated-arguments.ts'
import type { CallRule } from '../../catalog/curation.ts'
import { unaliasArguments } from '../../catalog/names/unalias.ts'
import type { View } from '../../catalog/view/view.ts'
import type { Downstream } from '../../downstream/downstream.ts'
import { Refusal } from '../../rpc/call.ts'
import type { Call, Caller } from '../../rpc/call.ts'
import { jsonObject } from '../../values/json-object.ts'
import { ambiguousParam } from '../../wire/headers/param-headers.ts'
import type { Payload } from '../../wire/message/payload.ts'
import { declaresApps, UI_EXTENSION, withoutTasks } from '../../wire/protocol/extensions.ts'
import { isAtLeast } from '../../wire/protocol/revisions.ts'
import { isPromptRef } from '../completion-ref.ts'
import { withoutVisits } from '../rounds/url-required.ts'
import type { RoutedCall } from '../routed-call.ts'

/** Writes the original name and the curated arguments into the params. Returns the error in the arguments, as text for the model. */
export const rewriteParams = ({ call, route, downstream, view }: RoutedCall): string | undefined => {
  const { params } = call
  const { original, entry } = route
  if (call.method === 'completion/complete') {
    const ref = params.object('ref')
    const revision = downstream.eras.revisionFor(call.caller)
    const isOld = revision !== undefined && !isAtLeast(revision, '2025-06-18') && isAtLeast(call.caller.revision, '2025-06-18')
    if (isOld && params.has('context')) downstream.fidelity.note('completionContext', call)
    ref?.set(isPromptRef(params) ? 'name' : 'uri', JSON.stringify(original))
  } else if (original !== call.target) params.set(call.method === 'resources/read' ? 'uri' : 'name', JSON.stringify(original))
  if (call.method !== 'tools/call') return undefined
  const { options } = downstream
  const args = params.raw('arguments')
  const isAliased = args !== undefined && options.unaliasArguments && view.mayRenameUris(options)
  const plain = isAliased ? unaliasArguments(args, options.prefix) : args
  const mirrored = entry?.rule?.paramHeaders ?? entry?.paramHeaders ?? []
  const ambiguous = args === undefined || mirrored.length === 0 ? undefined : ambiguousParam(mirrored, args)
  if (ambiguous !== undefined) throw new Refusal(-32600, ambiguous, { status: 400 })
  if (entry?.rule !== undefined) return fillIn(params, plain, entry.rule)
  if (plain !== undefined && plain !== args) params.set('arguments', plain)
  return undefined
}

/** The call for the server, with the same params. `isUnchanged`: see `Call.isUnchanged`. `ask`: asks the host during the call. */
export const callForServer = (
  { call, route, downstream, view, resume }: RoutedCall,
  isUnchanged: boolean,
  ask: Call['ask'],
): Call => {
  const { entry } = route
  const rule = entry?.rule
  return {
    ...call,
    caller: callerFor(downstream, call.caller, view, rule),
    target: route.original,
    paramHeaders: rule?.paramHeaders ?? entry?.paramHeaders ?? [],
    unknownHeaders: rule === undefined ? call.unknownHeaders : withoutHidden(call.unknownHeaders, rule),
    totalMs: rule?.totalMs,
    resume: withoutVisits(resume),
    isUnchanged,
    takesStreams: call.takesStreams === true && rule?.result === undefined && mayStream(call, downstream),
    ask,
    withheld: withheldFrom(downstream),
  }
}

/** Whether no projection reads the result of this call, so that it can be streamed. */
const mayStream = ({ method, caller }: Call, downstream: Downstream): boolean =>
  method === 'tools/call' &&
  (caller.session === undefined || (downstream.eras.eraFor(caller) === 'legacy' && isAtLeast(caller.revision, '2025-06-18')))

/** Writes the arguments into the params as the rule says. Returns the error in them. */
const fillIn = (params: Payload, args: Buffer | undefined, rule: CallRule): string | undefined => {
  const curated = fillArguments(args, rule.args)
  if ('refused' in curated) throw new Refusal(-32600, curated.refused, { status: 400 })
  if ('fault' in curated) return curated.fault
  if (curated.filled !== undefined) params.set('arguments', curated.filled)
  return undefined
}

/** The caller with the capabilities that this server may see for this call. */
const callerFor = ({ options }: Downstream, caller: Caller, { catalog }: View, rule: CallRule | undefined): Caller => {
  const seen = declaresApps(caller.capabilities) && !servesApps(options, catalog) ? withoutApps(caller) : caller
  return rule?.result === undefined ? seen : { ...seen, capabilities: withoutTasks(seen.capabilities) }
}

/** Removes a host's headers that mirror hidden arguments. */
const withoutHidden = (headers: Call['unknownHeaders'], { hiddenHeaders }: CallRule): Call['unknownHeaders'] =>
  hiddenHeaders.some((name) => headers[name] !== undefined)
    ? Object.fromEntries(Object.entries(headers).filter(([name]) => !hiddenHeaders.includes(name)))
    : headers

/** Hides the MCP Apps extension from a server whose apps are switched off (BRIDGING 3.16 rule 4). */
const withoutApps = (caller: Caller): Caller => {
  const extensions = Object.entries(jsonObject(caller.capabilities['extensions']) ?? {}).filter(([name]) => name !== UI_EXTENSION)
  return { ...caller, capabilities: { ...caller.capabilities, extensions: Object.fromEntries(extensions) } }
}

/** Members of the host's trace that an untrusted server does not get, since they may name users (BRIDGING 2.6). */
const UNTRUSTED: readonly string[] = ['baggage']

/** Keys of `_meta` that this server does not get. */
export const withheldFrom = ({ options }: Downstream): readonly string[] | undefined =>
  options.trusted === false ? UNTRUSTED : undefined
