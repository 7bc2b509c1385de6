/**
 * A host on its own thread, so that its reads do not delay the host whose calls are timed. It receives big results one
 * after the other and keeps none of them. It reports once that bytes arrive; when it is stopped, it reports the duration of each result.
 */
import { connect } from 'node:net'
import { parentPort, workerData } from 'node:worker_threads'
import { openHost } from './load.ts'
import { NONCE_LENGTH } from './payload.ts'
import { endlessReply } from './streams.ts'

export interface BigHostData {
  readonly url: string
  /** By its exposed name. */
  readonly tool: string
  /** Of the payload that it answers. */
  readonly bytes: number
}

const TAIL = 512

/** ms from the request, on a connection of its own, to the last byte of a result that is as long as it should be. */
const receive = async (url: URL, framed: string, bytes: number, onBytes: () => void): Promise<number> => {
  const socket = connect({ host: url.hostname, port: Number(url.port), noDelay: true })
  const whole = Promise.withResolvers<void>()
  const end = /\}\s*$/
  let read = 0
  let tail = ''
  const take = endlessReply((data) => {
    if (read === 0) onBytes()
    read += data.length
    tail = (tail + data.toString('latin1', Math.max(0, data.length - TAIL))).slice(-TAIL)
    if (read > bytes && end.test(tail)) whole.resolve()
  })
  socket.on('data', (chunk: Buffer) => {
    try {
      take(chunk)
    } catch (error) {
      whole.reject(error)
    }
  })
  socket.on('error', whole.reject)
  socket.on('close', () => whole.reject(new Error(`closed after ${read} bytes of ${bytes}: …${tail.slice(-100)}`)))
  const started = performance.now()
  socket.write(framed)
  try {
    await whole.promise
    return performance.now() - started
  } finally {
    socket.destroy()
  }
}

const port = parentPort!
const { url, tool, bytes } = workerData as BigHostData
const host = await openHost(new URL(url), 'legacy')
const took: number[] = []
const enough = new AbortController()
let isSaid = false
port.once('message', () => enough.abort())
const onBytes = () => {
  if (!isSaid) port.postMessage('bytes')
  isSaid = true
}
do {
  const nonce = crypto.randomUUID().slice(-NONCE_LENGTH)
  took.push(await receive(new URL(url), host.frame('tools/call', { name: tool, arguments: { nonce } }), bytes, onBytes))
} while (!enough.signal.aborted)
await host[Symbol.asyncDispose]()
port.postMessage(took)
