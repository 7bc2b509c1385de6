/** Loaded before a program: says on stderr, when it ends, which of Node's modules it has loaded. */
process.on('exit', () => {
  const loaded = process.moduleLoadList.map((name) => /^NativeModule (.+)$/.exec(name)?.[1]).filter(Boolean)
  process.stderr.write(`loaded: ${loaded.join(' ')}\n`)
})
