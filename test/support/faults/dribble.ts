/** T-23: sockets that send a byte now and then, half of them heads and half of them bodies, beside hosts that call as usual. */
import { connect } from 'node:net'
import type { Socket } from 'node:net'
import { fake } from '../fake-downstream.ts'
import { modernHttp } from '../fake-host.ts'
import { startGateway } from '../gateway.ts'

export interface Dribbled {
  /** 99th percentile of calls of others, ms: before and while the sockets dribble. */
  readonly quietP99Ms: number
  readonly busyP99Ms: number
  /** Sockets that the gateway did not close. */
  readonly left: number
  /** Calls of others that were not answered. */
  readonly failed: number
}

const FORM = 'Content-Type: application/json\r\nAccept: application/json, text/event-stream\r\n'
const OPENINGS = [
  'POST /mcp HTTP/1.1\r\nHost: localhost\r\nX-',
  `POST /mcp HTTP/1.1\r\nHost: localhost\r\n${FORM}Content-Length: 100000\r\n\r\n{`,
]
const CALLS = 300

export const dribble = async (count: number): Promise<Dribbled> => {
  await using gateway = await startGateway({
    servers: { a: fake.of({ kind: 'modern http', tools: ['t'] }) },
    hostLimits: { headersTimeoutMs: 3_000, requestTimeoutMs: 6_000 },
  })
  await using host = await modernHttp.connect(gateway)
  let failed = 0
  const p99 = async (): Promise<number> => {
    const times: number[] = []
    for (let at = 0; at < CALLS; at++) {
      const beganMs = performance.now()
      await host.call('tools/call', { name: 'a__t', arguments: {} }).catch(() => failed++)
      times.push(performance.now() - beganMs)
    }
    return times.sort((one, other) => one - other)[Math.floor(CALLS * 0.99)]!
  }
  await p99()
  const quietP99Ms = await p99()
  const sockets = new Set<Socket>()
  const closed = Array.from({ length: count }, (_, at) => {
    const socket = connect(Number(gateway.url.port), '127.0.0.1')
    sockets.add(socket)
    socket.on('error', () => undefined)
    socket.resume()
    socket.write(OPENINGS[at % 2] ?? '')
    return new Promise<void>((resolve) =>
      socket.once('close', () => {
        sockets.delete(socket)
        resolve()
      }),
    )
  })
  const drip = setInterval(() => {
    for (const socket of sockets) socket.write('a')
  }, 500)
  const busyP99Ms = await p99()
  await Promise.race([Promise.all(closed), new Promise((resolve) => setTimeout(resolve, 30_000))])
  clearInterval(drip)
  const left = sockets.size
  for (const socket of sockets) socket.destroy()
  return { quietP99Ms, busyP99Ms, left, failed }
}
