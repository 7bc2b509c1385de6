/** Talks to the inspector of a Node process: collects garbage before memory is read, and takes CPU profiles. */

/** As DevTools writes it; times in µs. */
export interface CpuProfile {
  readonly nodes: readonly ProfileNode[]
  readonly startTime: number
  readonly endTime: number
  /** Ids of the nodes on top, and the time since the sample before. */
  readonly samples: readonly number[]
  readonly timeDeltas: readonly number[]
}

export interface ProfileNode {
  readonly id: number
  readonly callFrame: { readonly functionName: string; readonly url: string; readonly lineNumber: number }
  readonly children?: readonly number[]
}

export interface Inspector extends AsyncDisposable {
  /** Bytes of the heap in use after a full collection. */
  collect(): Promise<number>
  profile(work: () => Promise<void>): Promise<CpuProfile>
}

const INTERVAL_US = 200

/** Rejects when nobody listens at `url` (`ws://127.0.0.1:PORT/ID`, as Node says it on stderr). */
export const openInspector = async (url: string): Promise<Inspector> => {
  const socket = new WebSocket(url)
  const pending = new Map<number, (result: unknown) => void>()
  let id = 0
  socket.addEventListener('message', ({ data }) => {
    const message = JSON.parse(String(data)) as { id?: number; result: unknown }
    if (message.id === undefined) return
    pending.get(message.id)?.(message.result)
    pending.delete(message.id)
  })
  await new Promise((resolve, reject) => {
    socket.addEventListener('open', resolve)
    socket.addEventListener('error', () => reject(new Error(`no inspector at ${url}`)))
  })
  const send = (method: string, params: object = {}): Promise<unknown> =>
    new Promise((resolve) => {
      pending.set(++id, resolve)
      socket.send(JSON.stringify({ id, method, params }))
    })
  return {
    collect: async () => {
      await send('HeapProfiler.collectGarbage')
      await send('HeapProfiler.collectGarbage') // what finalizers let go of
      return ((await send('Runtime.getHeapUsage')) as { usedSize: number }).usedSize
    },
    profile: async (work) => {
      await send('Profiler.enable')
      await send('Profiler.setSamplingInterval', { interval: INTERVAL_US })
      await send('Profiler.start')
      await work()
      return ((await send('Profiler.stop')) as { profile: CpuProfile }).profile
    },
    async [Symbol.asyncDispose]() {
      socket.close()
    },
  }
}
