/**
 * Throws while it is loaded if Node is too old: the first import of `index.ts`, since the modules that follow it fail on an older Node with
 * an error that does not name the cause. It imports nothing. `main.ts` has its own check.
 */

/** As in `engines` of package.json. */
const REQUIRED = [22, 19] as const

const [major = 0, minor = 0] = process.versions.node.split('.').map(Number)
if (major < REQUIRED[0] || (major === REQUIRED[0] && minor < REQUIRED[1]))
  throw new Error(`trunkline needs Node ${REQUIRED.join('.')} or later, and this is ${process.version}`)
