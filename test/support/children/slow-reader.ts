/**
 * Reads its stdin slowly and answers each request with an empty result. With a number as its argument, it stops to read after so many
 * reads and stays.
 */
const REST_MS = 25
const [, , limit] = process.argv
let [reads, text] = [0, '']

process.stdin.on('data', (chunk: Buffer) => {
  const lines = (text + chunk.toString('latin1')).split('\n')
  text = lines.pop() ?? ''
  for (const line of lines) {
    const { id } = JSON.parse(line) as { id: number }
    process.stdout.write(`${JSON.stringify({ jsonrpc: '2.0', id, result: {} })}\n`)
  }
  process.stdin.pause()
  if (++reads === Number(limit)) setInterval(() => undefined, 1_000)
  else setTimeout(() => process.stdin.resume(), REST_MS)
})
