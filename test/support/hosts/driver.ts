/** What the code for one SDK provides; `connectHost` adds the name and the disposal. */
import type { Host } from '../hosts.ts'

/** A connected client without its name. */
export type Driver = Omit<Host, 'name' | typeof Symbol.asyncDispose>
