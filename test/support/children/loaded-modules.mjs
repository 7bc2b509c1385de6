/** Loaded before a program: says on stderr, when it ends, which of Node's modules it has loaded, and which files. */
import { registerHooks } from 'node:module'
import { basename } from 'node:path'

const files = []
registerHooks({
  load(url, context, next) {
    if (url.startsWith('file:')) files.push(basename(url))
    return next(url, context)
  },
})

process.on('exit', () => {
  const loaded = process.moduleLoadList.map((name) => /^NativeModule (.+)$/.exec(name)?.[1]).filter(Boolean)
  process.stderr.write(`loaded: ${loaded.join(' ')}\nfiles: ${files.join(' ')}\n`)
})
