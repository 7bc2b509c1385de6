/**
 * What one test server remembers beyond a single request: what its slow calls reached, and whether the tool and the
 * prompt that come and go are there. A modern HTTP request gets a server instance of its own, and so does each pair of pipes, so none of
 * this may live in an instance.
 */
import type { Board } from './board.ts'

/** What a slow call can have reached. */
export type Reached = 'started' | 'cancelled' | 'seen'

/** The list that changed, or the resource whose content did. */
export type Change = 'tools' | 'prompts' | { uri: string }

/** Shared by every instance of one server. */
export interface ServerState {
  /** Whether `extra_tool` or `extra_prompt` is offered now. */
  hasExtra(list: 'tools' | 'prompts'): boolean
  /** Records that the slow call `key` began, was cancelled, or that its caller saw its progress. */
  mark(key: string, reached: Reached): void
  /** Resolves once `key` was marked; at once if it already was. */
  reached(key: string, reached: Reached): Promise<void>
  /** Adds or removes the extra tool or prompt; followers hear of it. */
  toggle(list: 'tools' | 'prompts'): void
  /** Tells every follower that the resource changed. */
  touch(uri: string): void
  /** Calls `listener` on every change until the returned function is called. */
  follow(listener: (change: Change) => void): () => void
}

/** The state written on `board`. */
export const createServerState = (board: Board): ServerState => ({
  hasExtra: (list) => board.has(`extra ${list}`),
  mark: (key, reached) => board.raise(`${reached} ${key}`),
  reached(key, reached) {
    const { promise, resolve } = Promise.withResolvers<void>()
    const flag = `${reached} ${key}`
    const check = () => {
      if (board.has(flag)) resolve()
    }
    const unwatch = board.watch(check)
    check()
    return promise.finally(unwatch)
  },
  toggle(list) {
    if (board.has(`extra ${list}`)) board.lower(`extra ${list}`)
    else board.raise(`extra ${list}`)
  },
  touch: (uri) => board.raise(`touched ${uri} ${crypto.randomUUID()}`),
  follow: (listener) =>
    board.watch((flag) => {
      const [kind, subject = ''] = flag.split(' ')
      if (kind === 'extra') listener(subject === 'tools' ? 'tools' : 'prompts')
      if (kind === 'touched') listener({ uri: subject })
    }),
})
