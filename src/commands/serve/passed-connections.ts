/** Connections that Node passes to the process of a worker. */
import type { Worker as Child } from 'node:cluster'

/** A connection that Node passes to a worker; `fd` is negative once it is closed here. */
interface PassedConnection {
  readonly fd: number
  close(): void
}

/**
 * Node keeps a connection open here until the worker confirms it, and forever if the worker ends before: its host would wait for an answer
 * in vain. Closes such connections, so that hosts connect again.
 */
export const closeUnconfirmed = (child: Child): void => {
  const { process: forked } = child
  // Cast: the arguments are passed on unchanged.
  const send = forked.send.bind(forked) as (...args: readonly unknown[]) => boolean
  let passed: PassedConnection[] = []
  const recording = (...args: readonly unknown[]): boolean => {
    const [, handle] = args
    if (isPassedConnection(handle)) passed = [...passed.filter(({ fd }) => fd >= 0), handle]
    return send(...args)
  }
  forked.send = recording
  child.once('exit', () => {
    for (const handle of passed) if (handle.fd >= 0) handle.close()
  })
}

const isPassedConnection = (handle: unknown): handle is PassedConnection =>
  typeof handle === 'object' && handle !== null && 'fd' in handle && typeof handle.fd === 'number' && 'close' in handle
