/** What a completion is about: the name of a prompt, or the URI of a resource or template. The type of its `ref` decides. */
import type { Payload } from '../wire/message/payload.ts'

export const isPromptRef = (params: Payload): boolean => params.object('ref')?.text('type') === 'ref/prompt'

/** `undefined`: the `ref` has no such member. */
export const refName = (params: Payload): string | undefined => params.object('ref')?.text(isPromptRef(params) ? 'name' : 'uri')
