/** Sends a captured request again, unchanged or edited: through the gateway like any other call, as principal `local`. */
import type { Running } from '../../app/running.ts'
import { LOCAL } from '../../auth/identity.ts'
import type { CallDetail } from '../../observe/capture/captured.ts'
import type { Viewer } from '../../observe/viewer.ts'
import { HIDDEN } from '../../redactor.ts'
import { parseJsonObject } from '../../values/json-object.ts'
import { join, Payload } from '../../wire/message/payload.ts'
import { MODERN } from '../../wire/protocol/revisions.ts'
import { callDetail } from './calls.ts'
import { callMethod } from './call-tool.ts'
import type { CallEnd } from './call-tool.ts'
import { AdminRefusal } from '../refusal.ts'
import { ownValue } from '../../values/own-value.ts'

/** The end of the call, and the number under which it was captured. */
export type ReplayEnd = CallEnd & { readonly call: number }

export interface ReplayRequest {
  /** Of the captured call. */
  readonly id: number
  /** JSON object that replaces the captured params. */
  readonly params: string | undefined
  /** A person has confirmed the call of a tool that does more than read. */
  readonly isConfirmed: boolean
}

/** Methods that can be replayed, and the member of their params that names the target. */
const FIELDS: Readonly<Record<string, 'name' | 'uri'>> = {
  'tools/call': 'name',
  'prompts/get': 'name',
  'resources/read': 'uri',
}

/** Rejects with `AdminRefusal` if the call cannot be replayed, or needs a confirmation or values that were hidden. */
export const replay = async (
  running: Pick<Running, 'gateway' | 'context' | 'observer'>,
  viewer: Viewer,
  { id, params: edited, isConfirmed }: ReplayRequest,
  signal: AbortSignal,
): Promise<ReplayEnd> => {
  const captured = callDetail(running.observer, viewer, id)
  const { method } = captured
  const field = ownValue(FIELDS, method)
  if (field === undefined)
    throw new AdminRefusal(400, 'body', `${method} cannot be replayed: only ${Object.keys(FIELDS).join(', ')}`)
  const { gateway, context } = running
  const scope = gateway.scopeFor(LOCAL, { server: captured.endpoint ?? undefined, toolset: captured.toolset ?? undefined })
  if (scope === undefined) throw new AdminRefusal(404, 'gone', 'its toolset or server is no longer configured')
  const params = objectOf(edited ?? paramsOf(captured))
  const target = params.text(field)
  if (target === undefined) throw new AdminRefusal(400, 'body', `params.${field} must be a string`)
  params.delete('_meta')
  const isWrite = method === 'tools/call' && gateway.feed.viewOf({ scope, revision: MODERN }).isWrite(target)
  const isHidden = join(params.parts()).includes(HIDDEN)
  // Of a request that was edited, a person can say that it means the mark itself.
  if (isHidden && edited === undefined)
    throw new AdminRefusal(409, 'hidden', `values of this request were hidden as secrets (${HIDDEN}): edit it, and enter them`)
  const reasons = [
    isWrite ? `${target} may do more than read: confirm the call` : '',
    isHidden ? `it still has ${HIDDEN}, where values were hidden as secrets: confirm that this is meant` : '',
  ].filter(Boolean)
  if (reasons.length > 0 && !isConfirmed) throw new AdminRefusal(409, 'confirm', reasons.join('; '))
  const call = context.nextRef()
  const end = await callMethod(
    { gateway, observer: context.observer, ref: call, replayOf: id },
    { method, target, params, scope },
    signal,
  )
  return { ...end, call }
}

/** Reads the body of `POST /replay`. Throws `AdminRefusal`. */
export const readReplay = (body: string): ReplayRequest => {
  const request = objectOf(body)
  const id = Number(request.raw('id')?.toString())
  if (!Number.isSafeInteger(id)) throw new AdminRefusal(400, 'body', 'id must be the number of a captured call')
  return { id, params: request.raw('params')?.toString(), isConfirmed: request.raw('confirm')?.toString() === 'true' }
}

const paramsOf = ({ id, request }: CallDetail): string => {
  if (request?.text === undefined)
    throw new AdminRefusal(404, 'gone', `the request of call ${id} is not kept completely (ui.capture.bodies, ui.capture.body)`)
  return objectOf(request.text).raw('params')?.toString() ?? '{}'
}

/** Throws `AdminRefusal` for anything but a JSON object. */
const objectOf = (json: string): Payload => {
  if (parseJsonObject(json) === undefined) throw new AdminRefusal(400, 'body', 'expected a JSON object')
  return Payload.at(Buffer.from(json))
}
