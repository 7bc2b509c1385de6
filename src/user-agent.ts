import { VERSION } from './version.ts'

/** The `User-Agent` of our own requests. */
export const USER_AGENT = `trunkline/${VERSION}`
