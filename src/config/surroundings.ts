/** The one place where the process around us is read: everything else is told. */
import { homedir } from 'node:os'
import type { Context } from './gather.ts'

/** `overrides` are what the command line says. */
export const readSurroundings = (overrides: Context['overrides'] = {}): Context => ({
  env: process.env,
  cwd: process.cwd(),
  home: homedir(),
  uid: process.getuid?.(),
  platform: process.platform,
  overrides,
})
