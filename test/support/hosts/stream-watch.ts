/**
 * Tells when a client's standalone GET stream is open. The SDK clients open it in the background after connecting,
 * and what a server announces before that is lost.
 */
/** One client's watch. */
export interface StreamWatch {
  fetch: typeof fetch
  /** Resolves once the first GET was answered, whatever the status. */
  opened: Promise<void>
}

/** A `fetch` to hand to one client transport. */
export const watchStream = (): StreamWatch => {
  const { promise: opened, resolve } = Promise.withResolvers<void>()
  return {
    opened,
    async fetch(input, init) {
      const response = await fetch(input, init)
      if (init?.method === 'GET') resolve()
      return response
    },
  }
}
