/** Reads the progress token of a request. */
import type { Id } from './envelope.ts'
import type { Payload } from './payload.ts'

/** JSON text of the progress token that a request carries. */
export const progressTokenOf = (params: Payload | undefined): Id | undefined =>
  params?.object('_meta')?.raw('progressToken')?.toString()
