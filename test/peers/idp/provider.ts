/** What the runs need of an identity provider: that it starts for a gateway, and how a person signs in at its page. */
import type { ChildProcess } from 'node:child_process'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Page } from 'playwright-core'

/** People of each provider: `bob` is an operator, `alice` reviews, `carol` may use nothing where the provider knows groups. */
export const PEOPLE = ['alice', 'bob', 'carol'] as const
export type Person = (typeof PEOPLE)[number]

/** A client id for hosts that an administrator registered, and the secret of Trunkline: as in the recipes of docs/identity. */
export const HOST_CLIENT = 'mcp-host'
export const SECRET = 'change-this-secret-of-trunkline'

export interface ProviderKind {
  /** Of its page in docs/identity, and of its made-up origin there: `https://NAME.example.com`. */
  readonly name: 'keycloak' | 'dex'
  /** It gives refresh tokens also to hosts that did not request `offline_access`. */
  readonly staysUnasked: boolean
  /** Downloads and builds it, once on a machine. Rejects with what is missing. */
  setUp(): Promise<void>
  /** Starts it for a gateway at `gatewayOrigin`, with `PEOPLE`. */
  start(gatewayOrigin: string): Promise<Provider>
  /** Fills in its page and submits it. */
  login(page: Page, person: Person): Promise<void>
}

export interface Provider extends AsyncDisposable {
  /** What stands for `https://NAME.example.com`. */
  readonly origin: string
}

/** Resolves when `url` answers 200. Rejects with what the program printed when it ends before, or after `limitMs`. */
export const answering = async (url: string, child: ChildProcess, limitMs: number): Promise<void> => {
  let output = ''
  for (const stream of [child.stdout, child.stderr]) stream?.on('data', (chunk: Buffer) => (output += chunk.toString()))
  for (const endMs = Date.now() + limitMs; ; await sleep(500)) {
    const reply = await fetch(url).catch(() => undefined)
    if (reply?.status === 200) return
    if (child.exitCode !== null || Date.now() > endMs) throw new Error(`it did not start: ${output.slice(-2_000)}`)
  }
}

/** Ends a program that was started `detached`, with the children that a script has. */
export const stop = (child: ChildProcess): void => {
  if (child.pid !== undefined && child.exitCode === null) process.kill(-child.pid, 'SIGKILL')
}
