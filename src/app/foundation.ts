/** What all parts of a gateway use: its secrets, limits and keys, the folder and the store of its state, and the clock of its periodic tasks. */
import { randomBytes } from 'node:crypto'
import { Seal } from '../auth/seal.ts'
import type { Configuration } from '../config/options.ts'
import type { Log } from '../values/log.ts'
import { Redactor } from '../redactor.ts'
import { LimitCounts } from '../rpc/limit-counts.ts'
import { Sweeper } from '../rpc/sweeper.ts'
import { sealKeys } from '../seal-key.ts'
import type { GuardedStore } from '../store/guarded-store.ts'
import { HttpClients } from '../transport/http1/client/http-clients.ts'
import type { RuntimeEnvironment } from './environment.ts'
import { openStore } from './open-store.ts'
import { holdAtMost, learnSecrets } from './reload.ts'
import type { InForce } from './reload.ts'
import { makeStateDir } from './state-folder.ts'

export interface Foundation {
  readonly environment: RuntimeEnvironment
  readonly inForce: InForce
  readonly log: Log
  /** The name of this process among gateways. */
  readonly instance: string
  /** Knows all secrets. */
  readonly redactor: Redactor
  /** Knows credentials only. */
  readonly credentials: Redactor
  readonly limits: LimitCounts
  readonly sweeper: Sweeper
  readonly seal: Seal
  /** `undefined`: there is none, or it cannot be used. */
  readonly stateDir: string | undefined
  /** `undefined`: none is configured. */
  readonly store: GuardedStore | undefined
  readonly clients: HttpClients
  readonly close: () => Promise<void>
}

export const openFoundation = async (configuration: Configuration, environment: RuntimeEnvironment): Promise<Foundation> => {
  const { log, member, redactor = new Redactor() } = environment
  const credentials = new Redactor()
  learnSecrets({ redactor, credentials }, configuration)
  const sweeper = new Sweeper({
    failed: (error) => log.error({ error: error instanceof Error ? error.stack : String(error) }, 'a periodic task failed'),
  })
  const limits = new LimitCounts(log)
  const stateDir = makeStateDir(configuration.stateDir, log)
  const seal = new Seal({ keys: member?.keys ?? sealKeys(configuration.stateKeys, stateDir, log) })
  const store = await openStore(configuration.store, environment.store, log)
  const clients = new HttpClients()
  holdAtMost(clients.bodies.held, configuration.host)
  return {
    environment,
    inForce: { configuration },
    log,
    instance: randomBytes(12).toString('base64url'),
    redactor,
    credentials,
    limits,
    sweeper,
    seal,
    stateDir,
    store,
    clients,
    close: async () => {
      // A store that was given is closed by its owner.
      if (environment.store === undefined) await store?.[Symbol.asyncDispose]()
      await clients.close()
      sweeper[Symbol.dispose]()
    },
  }
}
