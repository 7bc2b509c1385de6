/**
 * What one test server process remembers beyond a single request: what its
 * slow calls reached, and whether the tool and the prompt that come and go are there. A modern HTTP request gets a server instance
 * of its own, so none of this may live in an instance.
 */
export type Reached = 'started' | 'cancelled' | 'seen'

/** The list that changed, or the resource whose content did. */
export type Change = 'tools' | 'prompts' | { uri: string }

export interface ServerState {
  /** Whether `extra_tool` and `extra_prompt` are offered now. */
  readonly extra: { tools: boolean; prompts: boolean }
  /** Records that the slow call `key` began, was cancelled, or that its caller saw its progress. */
  mark(key: string, reached: Reached): void
  /** Resolves once `key` was marked; at once if it already was. */
  reached(key: string, reached: Reached): Promise<void>
  /** Adds or removes the extra tool or prompt, then tells every follower. */
  toggle(list: 'tools' | 'prompts'): void
  /** Tells every follower that the resource changed. */
  touch(uri: string): void
  /** Calls `listener` on every change until the returned function is called. */
  follow(listener: (change: Change) => void): () => void
}

/** A fresh state in which nothing was called and no extra is offered. */
export const createServerState = (): ServerState => {
  const extra = { tools: false, prompts: false }
  const marks = new Set<string>()
  const waiting = new Map<string, (() => void)[]>()
  const followers = new Set<(change: Change) => void>()
  const tell = (change: Change) => {
    for (const follower of followers) follower(change)
  }
  return {
    extra,
    mark(key, reached) {
      const name = `${reached} ${key}`
      marks.add(name)
      for (const resolve of waiting.get(name) ?? []) resolve()
      waiting.delete(name)
    },
    reached(key, reached) {
      const name = `${reached} ${key}`
      if (marks.has(name)) return Promise.resolve()
      return new Promise((resolve) => waiting.set(name, [...(waiting.get(name) ?? []), resolve]))
    },
    toggle(list) {
      extra[list] = !extra[list]
      tell(list)
    },
    touch: (uri) => tell({ uri }),
    follow(listener) {
      followers.add(listener)
      return () => void followers.delete(listener)
    },
  }
}
