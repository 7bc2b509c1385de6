/**
 * Access by OAuth scopes: `mcp:<key>` grants a server, `mcp:<key>:write` also its tools that do not only read (BRIDGING 6.1). A server
 * without configured scopes is not limited.
 */

const WRITE = ':write'

export class Grants {
  /** The granted scopes that limit the view; equal texts mean equal views. */
  readonly id: string
  readonly #asked: ReadonlySet<string>
  readonly #granted: ReadonlySet<string>

  /** `id`: scopes separated by blanks (`limitingScopes`). `asked`: all scopes that the gateway requests. */
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

  /** All scopes that an operation of the server needs, for one challenge (B238). */
  needed(server: string, isWrite: boolean): readonly string[] {
    return [readScope(server), ...(isWrite ? [writeScope(server)] : [])].filter((scope) => this.#asked.has(scope))
  }

  #has(scope: string): boolean {
    return !this.#asked.has(scope) || this.#granted.has(scope)
  }
}

const readScope = (server: string): string => `mcp:${server}`
const writeScope = (server: string): string => `mcp:${server}${WRITE}`

/** The granted scopes that limit the view, sorted, separated by blanks; `undefined`: no requested scope limits it. */
export const limitingScopes = (granted: readonly string[], asked: ReadonlySet<string>): string | undefined => {
  const limiting = [...asked].filter((scope) => scope.startsWith('mcp:') && scope !== 'mcp:connect')
  if (limiting.length === 0) return undefined
  const keys = new Set(limiting.map(serverOf))
  return [...new Set(granted.filter((scope) => keys.has(serverOf(scope))))].sort().join(' ')
}

const serverOf = (scope: string): string => (scope.endsWith(WRITE) ? scope.slice(0, -WRITE.length) : scope)
