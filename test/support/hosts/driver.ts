/** What the code for one SDK provides; `connectHost` adds the name and the disposal. */
import type { Host } from '../hosts.ts'

export type Driver = Omit<Host, 'name' | typeof Symbol.asyncDispose>
