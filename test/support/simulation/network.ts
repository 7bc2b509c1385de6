/**
 * A network in memory: sockets and listeners in the place of `node:net`, with delays, windows that fill up, connections that break, stand still
 * or go half. Bytes arrive in order or not at all. Every end belongs to the process that opened it (`node.ts`), so that two of them can be parted.
 */
import { Duplex } from 'node:stream'
import type { Server } from 'node:net'
import type { SimulatedClock, SimulatedTimer } from './clock.ts'
import { currentNode, runAt } from './node.ts'
import type { SimulatedNode } from './node.ts'
import type { Random } from './random.ts'

/** What one direction takes before its reader has read. */
const WINDOW_BYTES = 64 * 1024
/** How long unanswered bytes, and unanswered keep-alives, are tried again, as Linux does. */
const RETRANSMIT_MS = 900_000
const KEEP_ALIVE_MS = 700_000

export interface ConnectOptions {
  readonly host?: string
  readonly port: number
  readonly allowHalfOpen?: boolean
  /** Agents that keep connections ask for it from the beginning. */
  readonly keepAlive?: boolean
  readonly onread?: { readonly buffer: Buffer; readonly callback: (length: number, buffer: Buffer) => boolean }
}

type Entry =
  | { readonly type: 'bytes'; readonly bytes: Buffer; readonly dueMs: number }
  | { readonly type: 'end'; readonly dueMs: number }

const systemError = (code: string, what: string): NodeJS.ErrnoException =>
  Object.assign(new Error(`${what} ${code}`), { code, syscall: what })

/** One direction of a connection. */
class Lane {
  readonly #network: SimulatedNetwork
  readonly #maxDelayMs: number
  readonly #sender: SimulatedSocket
  readonly receiver: SimulatedSocket
  readonly #queue: Entry[] = []
  #bytes = 0
  #lastDueMs = 0
  #waiting: (() => void) | undefined
  #isScheduled = false
  stoppedUntilMs = 0

  constructor(network: SimulatedNetwork, sender: SimulatedSocket, receiver: SimulatedSocket, maxDelayMs: number) {
    this.#network = network
    this.#sender = sender
    this.receiver = receiver
    this.#maxDelayMs = maxDelayMs
  }

  send(bytes: Buffer, done: () => void): void {
    this.#bytes += bytes.length
    this.#add({ type: 'bytes', bytes, dueMs: this.#dueMs() })
    if (this.#bytes < WINDOW_BYTES) process.nextTick(done)
    else this.#waiting = done
  }

  end(): void {
    this.#add({ type: 'end', dueMs: this.#dueMs() })
  }

  /** Nothing arrives any more. */
  drop(): void {
    this.#queue.length = 0
    this.#ready()
  }

  get isWaiting(): boolean {
    return this.#queue.length > 0
  }

  /** Gives the reader what is due and it takes. */
  readonly deliver = (): void => {
    this.#isScheduled = false
    const { clock } = this.#network
    if (this.receiver.isGone) this.#queue.length = 0
    for (let entry = this.#queue[0]; entry !== undefined; entry = this.#queue[0]) {
      const { node } = this.receiver
      const partedMs = this.#network.partedUntilMs(this.#sender.node, node)
      const dueMs = Math.max(entry.dueMs, this.stoppedUntilMs, partedMs, node?.pausedUntilMs ?? 0)
      if (dueMs === Infinity) return
      if (dueMs > clock.nowMs) return this.#deliverIn(dueMs - clock.nowMs)
      if (entry.type === 'bytes' && !this.receiver.isReading) return
      this.#queue.shift()
      if (entry.type === 'end') this.receiver.ended()
      else {
        this.#bytes -= entry.bytes.length
        this.receiver.received(entry.bytes)
        if (this.#bytes < WINDOW_BYTES) this.#ready()
      }
    }
  }

  /** The sender may write on. */
  #ready(): void {
    const waiting = this.#waiting
    this.#waiting = undefined
    if (waiting !== undefined && !this.#sender.isGone) runAt(this.#sender.node, waiting)
  }

  #add(entry: Entry): void {
    this.#queue.push(entry)
    this.#deliverIn(Math.max(0, entry.dueMs - this.#network.clock.nowMs))
  }

  #deliverIn(ms: number): void {
    if (this.#isScheduled) return
    this.#isScheduled = true
    this.#network.clock.after(ms, this.deliver)
  }

  #dueMs(): number {
    const dueMs = this.#network.clock.nowMs + this.#network.random.next() * this.#maxDelayMs
    return (this.#lastDueMs = Math.max(this.#lastDueMs, dueMs))
  }
}

export class SimulatedSocket extends Duplex {
  connecting = false
  pending = false
  readonly remoteAddress = '127.0.0.1'
  readonly remoteFamily = 'IPv4'
  readonly localAddress = '127.0.0.1'
  /** The listener's port; of a pipe 0. */
  readonly port: number
  /** The process that has this end. */
  readonly node: SimulatedNode | undefined
  /** Its process was killed, or its machine is lost. */
  isGone = false
  bytesRead = 0
  bytesWritten = 0
  timeout = 0
  readonly #network: SimulatedNetwork
  readonly #onread: ConnectOptions['onread']
  #out: Lane | undefined
  #in: Lane | undefined
  #peer: SimulatedSocket | undefined
  #hasRoom = true
  #isStopped = false
  #timer: SimulatedTimer | undefined
  #keepAlive = false
  #onConnected: (() => void)[] = []

  constructor(network: SimulatedNetwork, port: number, options: Partial<ConnectOptions> = {}, node?: SimulatedNode) {
    super({ allowHalfOpen: options.allowHalfOpen ?? false })
    this.#network = network
    this.node = node
    this.#onread = options.onread
    this.port = port
    network.sockets.add(this)
  }

  /** Joins two ends; `maxDelayMs`: of each chunk, either way. */
  static join(network: SimulatedNetwork, a: SimulatedSocket, b: SimulatedSocket, maxDelayMs: number): void {
    const [there, back] = [new Lane(network, a, b, maxDelayMs), new Lane(network, b, a, maxDelayMs)]
    a.#join(b, there, back)
    b.#join(a, back, there)
  }

  /** The process at the other end. */
  get peerNode(): SimulatedNode | undefined {
    return this.#peer?.node
  }
  get remotePort(): number {
    return this.port
  }
  get localPort(): number {
    return this.port
  }
  get readyState(): string {
    return this.connecting ? 'opening' : this.destroyed ? 'closed' : 'open'
  }
  /** Whether the other end is closed and this one will never know. */
  get isAbandoned(): boolean {
    return this.#isHalf() && this.#peer?.destroyed === true
  }
  get isReading(): boolean {
    return this.destroyed || (this.#onread === undefined ? this.#hasRoom : !this.#isStopped)
  }

  /** Called by the lane. */
  received(bytes: Buffer): void {
    runAt(this.node, () => this.#receive(bytes))
  }

  #receive(bytes: Buffer): void {
    // Bytes for an end that is closed are answered with a reset.
    if (this.destroyed) return this.#peer?.reset()
    this.bytesRead += bytes.length
    this.#touch()
    if (this.#onread === undefined) {
      this.#hasRoom = this.push(bytes)
      return
    }
    const { buffer, callback } = this.#onread
    for (let at = 0; at < bytes.length && !this.destroyed; at += buffer.length) {
      const length = bytes.copy(buffer, 0, at)
      if (!callback(length, buffer)) this.pause()
    }
  }

  /** Called by the lane. */
  ended(): void {
    if (this.destroyed) return
    runAt(this.node, () => {
      this.push(null)
      this.read(0)
    })
  }

  /** The connection is broken from outside, or by the other end. */
  reset(): void {
    if (!this.destroyed && !this.isGone) runAt(this.node, () => this.destroy(systemError('ECONNRESET', 'read')))
  }

  /** Its process was killed: the other end is reset, or told nothing (`isSilent`), as when the machine is lost. */
  vanish(isSilent: boolean): void {
    this.isGone = true
    this.#network.sockets.delete(this)
    if (this.#timer !== undefined) this.#network.clock.clear(this.#timer)
    const peer = this.#peer
    // A balancer finds out by its own checks, and servers are not waited for.
    if (isSilent && peer?.node !== undefined) peer.stop(Infinity)
    else if (peer !== undefined) this.#network.clock.after(0, () => peer.reset())
  }

  resetAndDestroy(): this {
    const peer = this.#peer
    if (peer !== undefined && !this.#isHalf()) this.#network.clock.after(0, () => peer.reset())
    this.destroy()
    return this
  }

  /** Nothing passes for `ms`; `Infinity`: never again, and neither end is told. */
  stop(ms: number): void {
    const untilMs = this.#network.clock.nowMs + ms
    for (const lane of [this.#out, this.#in]) {
      if (lane === undefined) continue
      lane.stoppedUntilMs = untilMs
      if (ms !== Infinity) this.#network.clock.after(ms, lane.deliver)
    }
    if (ms !== Infinity) return
    for (const end of [this, this.#peer])
      if (end !== undefined)
        this.#network.clock.after(end.#keepAlive ? KEEP_ALIVE_MS : RETRANSMIT_MS, () => {
          if (!end.destroyed && !end.isGone && (end.#keepAlive || end.#out?.isWaiting === true))
            runAt(end.node, () => end.destroy(systemError('ETIMEDOUT', 'read')))
        })
  }

  connected(): void {
    this.connecting = this.pending = false
    runAt(this.node, () => {
      for (const run of this.#onConnected.splice(0)) run()
      this.emit('connect')
      this.emit('ready')
    })
  }

  override pause(): this {
    this.#isStopped = true
    return super.pause()
  }

  override resume(): this {
    this.#isStopped = false
    if (this.#onread !== undefined) this.#network.clock.after(0, () => this.#in?.deliver())
    return super.resume()
  }

  setTimeout(ms: number, callback?: () => void): this {
    this.timeout = ms
    if (callback !== undefined) this.once('timeout', callback)
    this.#touch()
    return this
  }
  setNoDelay(): this {
    return this
  }
  setKeepAlive(isOn = false): this {
    this.#keepAlive = isOn
    return this
  }
  ref(): this {
    return this
  }
  unref(): this {
    return this
  }
  address(): object {
    return { address: '127.0.0.1', family: 'IPv4', port: this.port }
  }
  destroySoon(): void {
    if (this.writable) this.end()
    if (this.writableFinished) this.destroy()
    else this.once('finish', () => this.destroy())
  }

  override _read(): void {
    this.#hasRoom = true
    if (this.#in?.isWaiting === true) this.#network.clock.after(0, this.#in.deliver)
  }

  override _write(chunk: Buffer | string, encoding: BufferEncoding, done: (error?: Error) => void): void {
    // A copy: the writer may use its memory again once this is called back.
    const bytes = Buffer.from(chunk as string, encoding)
    const send = (): void => {
      this.bytesWritten += bytes.length
      this.#touch()
      if (this.#out === undefined) done(systemError('EPIPE', 'write'))
      else this.#out.send(bytes, done)
    }
    if (this.connecting) this.#onConnected.push(send)
    else send()
  }

  override _final(done: () => void): void {
    const end = (): void => {
      this.#out?.end()
      done()
    }
    if (this.connecting) this.#onConnected.push(end)
    else end()
  }

  override _destroy(error: Error | null, done: (error: Error | null) => void): void {
    if (this.#timer !== undefined) this.#network.clock.clear(this.#timer)
    this.#network.sockets.delete(this)
    this.connecting = false
    if (!this.writableFinished && !this.#isHalf()) this.#out?.end()
    this.#in?.drop()
    // Once both are closed neither refers to the other.
    const peer = this.#peer
    if (peer?.destroyed === true) for (const end of [this, peer]) end.#part()
    done(error)
  }

  #part(): void {
    this.#peer = this.#out = this.#in = undefined
  }

  #isHalf(): boolean {
    return this.#out?.stoppedUntilMs === Infinity
  }

  #join(peer: SimulatedSocket, out: Lane, incoming: Lane): void {
    this.#peer = peer
    this.#out = out
    this.#in = incoming
  }

  #touch(): void {
    if (this.#timer !== undefined) this.#network.clock.clear(this.#timer)
    this.#timer = undefined
    if (this.timeout > 0 && !this.destroyed)
      this.#timer = this.#network.clock.after(this.timeout, () => this.emit('timeout'), this.node)
  }
}

interface Listener {
  readonly server: Server & { readonly allowHalfOpen?: boolean; readonly keepAlive?: boolean }
  readonly open: Set<SimulatedSocket>
  readonly node: SimulatedNode | undefined
  closed: (() => void) | undefined
}

const FIRST_PORT = 20_000

export class SimulatedNetwork {
  readonly clock: SimulatedClock
  readonly random: Random
  readonly sockets = new Set<SimulatedSocket>()
  readonly #listeners = new Map<number, Listener>()
  readonly #byServer = new WeakMap<object, { readonly port: number; readonly listener: Listener }>()
  /** Ports that take no new connections for now, and until when nothing of them is even refused. */
  readonly unreachableUntilMs = new Map<number, number>()
  /** Ports that stand for others: what is known by one of its own name can be broken, or lead elsewhere, alone. */
  readonly aliases = new Map<number, () => number>()
  /** Until when nothing passes from one machine to another, by their names. */
  readonly #parted = new Map<string, number>()
  /** The same of new connections alone. */
  readonly #barred = new Map<string, number>()
  maxDelayMs = 2
  #nextPort = FIRST_PORT

  constructor(clock: SimulatedClock, random: Random) {
    this.clock = clock
    this.random = random
  }

  get listening(): readonly number[] {
    return [...this.#listeners.keys()]
  }

  listen(server: Listener['server'], wanted: number): void {
    const port = wanted === 0 ? this.#nextPort++ : wanted
    if (this.#listeners.has(port)) return this.#soon(() => server.emit('error', systemError('EADDRINUSE', 'listen')))
    const listener: Listener = { server, open: new Set(), node: currentNode(), closed: undefined }
    this.#listeners.set(port, listener)
    this.#byServer.set(server, { port, listener })
    this.#soon(() => server.emit('listening'))
  }

  /** Nothing passes that way for `ms`; what was sent meanwhile arrives afterwards. */
  part(from: string, to: string, ms: number): void {
    this.#parted.set(`${from} > ${to}`, this.clock.nowMs + ms)
  }

  /** No connection is opened that way for `ms`; those that are open go on. */
  bar(from: string, to: string, ms: number): void {
    this.#barred.set(`${from} > ${to}`, this.clock.nowMs + ms)
  }

  /** Nobody is parted any more. */
  heal(): void {
    this.#parted.clear()
    this.#barred.clear()
  }

  partedUntilMs(from: { readonly name: string } | undefined, to: { readonly name: string } | undefined): number {
    if (from === undefined || to === undefined || this.#parted.size === 0) return 0
    return this.#parted.get(`${from.name} > ${to.name}`) ?? 0
  }

  /** When one machine can open connections to another. */
  #opensAtMs(from: SimulatedNode | undefined, to: SimulatedNode | undefined): number {
    if (from === undefined || to === undefined) return 0
    const barredMs = this.#barred.get(`${from.name} > ${to.name}`) ?? 0
    return Math.max(barredMs, this.partedUntilMs(from, to), this.partedUntilMs(to, from))
  }

  /** A process was killed. `isSilent`: its machine is lost, and says nothing to the others. */
  kill(node: SimulatedNode, isSilent: boolean): void {
    for (const [port, listener] of this.#listeners) if (listener.node === node) this.#listeners.delete(port)
    for (const socket of this.sockets) if (socket.node === node) socket.vanish(isSilent)
  }

  portOf(server: object): number | undefined {
    return this.#byServer.get(server)?.port
  }

  /** No new connections; `closed` once all others have ended. */
  unlisten(server: object, closed: () => void): void {
    const found = this.#byServer.get(server)
    if (found === undefined) return this.#soon(closed)
    this.#listeners.delete(found.port)
    this.#byServer.delete(server)
    found.listener.closed = closed
    if (found.listener.open.size === 0) this.#soon(closed)
  }

  connect(options: ConnectOptions): SimulatedSocket {
    const { port } = options
    const near = new SimulatedSocket(this, port, options, currentNode())
    near.connecting = near.pending = true
    if (options.keepAlive === true) near.setKeepAlive(true)
    const attempt = (): void => {
      if (near.destroyed || near.isGone) return
      const untilMs = this.unreachableUntilMs.get(port) ?? 0
      if (untilMs > this.clock.nowMs) {
        if (untilMs !== Infinity) this.clock.after(untilMs - this.clock.nowMs, attempt)
        return
      }
      const listener = this.#listeners.get(this.aliases.get(port)?.() ?? port)
      if (listener === undefined) return void runAt(near.node, () => near.destroy(systemError('ECONNREFUSED', 'connect')))
      const { node } = listener
      const opensAtMs = this.#opensAtMs(near.node, node)
      if (opensAtMs > this.clock.nowMs) return void this.clock.after(opensAtMs - this.clock.nowMs, attempt)
      const far = new SimulatedSocket(this, port, { allowHalfOpen: listener.server.allowHalfOpen === true }, node)
      if (listener.server.keepAlive === true) far.setKeepAlive(true)
      SimulatedSocket.join(this, near, far, this.maxDelayMs)
      listener.open.add(far)
      far.once('close', () => {
        listener.open.delete(far)
        if (listener.open.size === 0) listener.closed?.()
      })
      near.connected()
      Object.assign(far, { server: listener.server })
      const accept = (): void => void listener.server.emit('connection', far)
      // The system accepts for a process that stands still.
      if (node !== undefined && node.pausedUntilMs > this.clock.nowMs)
        this.clock.after(node.pausedUntilMs - this.clock.nowMs, accept, node)
      else runAt(node, accept)
    }
    this.clock.after(this.random.next() * this.maxDelayMs, attempt)
    return near
  }

  /** Two ends that are joined without a listener, as the pipes of a process are. */
  pair(): readonly [SimulatedSocket, SimulatedSocket] {
    const near = new SimulatedSocket(this, 0, { allowHalfOpen: true }, currentNode())
    const far = new SimulatedSocket(this, 0, { allowHalfOpen: true })
    SimulatedSocket.join(this, near, far, 0.1)
    return [near, far]
  }

  /** All sockets of the connections of one port. */
  at(port: number): readonly SimulatedSocket[] {
    return [...this.sockets].filter((socket) => socket.port === port)
  }

  #soon(run: () => void): void {
    this.clock.after(0, run, currentNode())
  }
}
