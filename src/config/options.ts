/** The whole configuration after reading: frozen, complete, without variables. What `app.ts` is given. */
import type { ServerOptions } from '../downstream/options.ts'
import type { GatewayOptions } from '../gateway/options.ts'
import type { HostOptions } from '../host/options.ts'

export interface Configuration {
  /** Absolute paths of every file read, the main one first: what is watched, and what names the state folder. */
  readonly files: readonly string[]
  readonly servers: readonly ServerOptions[]
  readonly gateway: GatewayOptions
  readonly host: HostOptions
  readonly log: { readonly level: string; readonly format: 'auto' | 'json' | 'pretty' }
  /** State folder of this configuration, absolute; `undefined`: keep nothing. */
  readonly stateDir: string | undefined
  /** Folder of the admin socket, absolute. */
  readonly runtimeDir: string
  readonly watch: boolean
  /** What a person should know: left-out entries, renamed keys, readable secrets. One sentence each. */
  readonly warnings: readonly string[]
}
