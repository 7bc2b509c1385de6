/**
 * What OAuth scopes let a caller see: `mcp:<key>` a server, `mcp:<key>:write` the tools of it that do not only read (BRIDGING 6.1).
 * A scope limits only where it is among those we ask for.
 */

const WRITE = ':write'

export class Grants {
  /** Names what was granted, as far as it matters: the same text, the same view. */
  readonly id: string
  readonly #asked: ReadonlySet<string>
  readonly #granted: ReadonlySet<string>

  /** `id`: scopes with blanks between (`limitingScopes`); `asked`: all that we ask for. */
  constructor(id: string, asked: ReadonlySet<string>) {
    this.id = id
    this.#asked = asked
    this.#granted = new Set(id.split(' '))
  }

  /** The write scope includes the read scope. */
  reads(server: string): boolean {
    return this.#has(readScope(server)) || this.#granted.has(writeScope(server))
  }

  writes(server: string): boolean {
    return this.reads(server) && this.#has(writeScope(server))
  }

  /** The scopes that something of the server takes: all of them, for one challenge (B238). */
  needed(server: string, isWrite: boolean): readonly string[] {
    return [readScope(server), ...(isWrite ? [writeScope(server)] : [])].filter((scope) => this.#asked.has(scope))
  }

  #has(scope: string): boolean {
    return !this.#asked.has(scope) || this.#granted.has(scope)
  }
}

const readScope = (server: string): string => `mcp:${server}`
const writeScope = (server: string): string => `mcp:${server}${WRITE}`

/** Those of the granted scopes that limit anything, sorted, with blanks between; `undefined`: nothing that is asked for limits. */
export const limitingScopes = (granted: readonly string[], asked: ReadonlySet<string>): string | undefined => {
  const limiting = [...asked].filter((scope) => scope.startsWith('mcp:') && scope !== 'mcp:connect')
  if (limiting.length === 0) return undefined
  const keys = new Set(limiting.map(serverOf))
  return [...new Set(granted.filter((scope) => keys.has(serverOf(scope))))].sort().join(' ')
}

const serverOf = (scope: string): string => (scope.endsWith(WRITE) ? scope.slice(0, -WRITE.length) : scope)
