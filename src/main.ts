#!/usr/bin/env node
/**
 * The entry point: prints one sentence if Node is too old, else loads the program. It imports nothing before this check, and every Node
 * since 14 can parse it.
 */

/** As in `engines` of package.json. */
const REQUIRED = [22, 19] as const

const [major = 0, minor = 0] = process.versions.node.split('.').map(Number)
if (major < REQUIRED[0] || (major === REQUIRED[0] && minor < REQUIRED[1])) {
  process.stderr.write(
    `trunkline needs Node ${REQUIRED.join('.')} or later, and this is ${process.version}; install a newer one, or run it with npx -p node@24 trunkline\n`,
  )
  process.exitCode = 1
} else {
  // Before the modules are loaded that the cache should contain.
  const { setHeapOptions, useCompileCache } = await import('./config/engine.ts')
  useCompileCache()
  setHeapOptions()
  await import('./program.ts')
}
