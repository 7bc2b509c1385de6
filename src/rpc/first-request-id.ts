/** Where the ids of requests begin if several processes may ask the same peer. */
import { randomBytes } from 'node:crypto'

/** Peers may keep ids in 32 bits. */
const MAX_FIRST_ID = 2 ** 30

/** A random id, so that an answer to a request of another process matches none of this one. */
export const firstRequestId = (): number => 1 + (randomBytes(4).readUInt32BE() % MAX_FIRST_ID)
