import { homedir, userInfo } from 'node:os'
import { isAbsolute, posix } from 'node:path'
import { attempt } from '../values/attempt.ts'

/**
 * The home folder of the user. With an empty or relative `HOME` it would be in the working folder, which another user may have written:
 * then it is that of the system's list of users, or the root for a user who is not in it.
 */
export const homeFolder = (home = attempt(homedir) ?? ''): string =>
  isAbsolute(home) ? home : (attempt(() => userInfo().homedir) ?? posix.sep)
