/** Opens the store that replicas share (`store`). A store that is not reachable ends no start and no call. */
import type { Log } from '../values/log.ts'
import { GuardedStore } from '../store/guarded-store.ts'
import type { StoreOptions } from '../store/store-options.ts'
import type { Store } from '../store/store.ts'
import { within } from '../time/within.ts'

/** How long a start waits for the store; after that it continues without. */
const STORE_START_MS = 1_000

/** `undefined`: none is configured. `given`: replaces the configured one. */
export const openStore = async (
  options: StoreOptions | undefined,
  given: Store | undefined,
  log: Log,
): Promise<GuardedStore | undefined> => {
  const guarded = (store: Store): GuardedStore =>
    new GuardedStore(store, {
      changed: (isDown, reason) => {
        if (isDown) log.warn({ reason }, 'the shared store is not reachable: sessions stay at their replicas (store)')
        else log.info({}, 'the shared store is reachable again')
      },
    })
  if (given !== undefined) return guarded(given)
  if (options === undefined) return undefined
  const { RedisStore } = await import('../store/redis-store.ts')
  const store = new RedisStore(options, log)
  const connected = store.connected.then(() => true)
  if ((await within(STORE_START_MS, connected)) === undefined)
    log.warn({ reason: store.trouble }, 'the shared store does not answer: starting without (store)')
  return guarded(store)
}
