/**
 * A name that no list shows may belong to a server of which nothing is known yet: starting, queued, down, or not signed in. Then it is a
 * matter of that server's state, never "unknown" (BRIDGING 7.2; B279). Asked only where a call named nothing that its caller sees.
 */
import { restoreUri } from '../../catalog/names/uris.ts'
import type { Downstream } from '../../downstream/downstream.ts'
import type { Call } from '../../rpc/call.ts'
import type { Feed } from '../lists/feed.ts'

export interface LateNamesSource {
  readonly feed: Pick<Feed, 'reaches' | 'viewOf'>
  readonly downstreams: () => readonly Downstream[]
  /** Waits within the list budget for servers that are starting. */
  readonly known: (caller: Call['caller']) => Promise<void>
}

/** The server that a name can only belong to, and what it calls it, as far as the name tells. */
export interface LateOwner {
  readonly downstream: Downstream
  readonly original: string
}

export class LateNames {
  readonly #source: LateNamesSource

  constructor(source: LateNamesSource) {
    this.#source = source
  }

  /** Of the servers without lists, the one that the name of this call can only belong to. */
  ownerOf(call: Call): LateOwner | undefined {
    return this.#soleOwner(
      call,
      this.#reached(call).filter(({ offers }) => !offers.hasLists),
    )
  }

  /** Of all servers that the caller reaches, the one that the name of this call can only belong to by its form. */
  byForm(call: Call): LateOwner | undefined {
    return this.#soleOwner(call, this.#reached(call))
  }

  /**
   * Resolves once it is worth looking again. Waits for the one server that may have the name for `timeouts.wait`, and throws the
   * `Failure` of its state; where none or several may have it, for the lists alone.
   */
  async known(call: Call, owner = this.ownerOf(call)): Promise<void> {
    await (owner === undefined ? this.#source.known(call.caller) : owner.downstream.listed())
  }

  #isPrefixed({ caller }: Call): boolean {
    const { naming } = this.#source.feed.viewOf(caller).catalog
    return naming.prefix !== 'never' && caller.scope.server === undefined
  }

  #reached({ caller: { scope, principal } }: Call): Downstream[] {
    const reached = this.#source.downstreams().filter(({ options }) => this.#source.feed.reaches(scope, options))
    return reached.map((one) => one.for(principal))
  }

  #soleOwner(call: Call, downstreams: readonly Downstream[]): LateOwner | undefined {
    const owners = downstreams.flatMap((downstream) => {
      const original = originalOf(call, downstream, this.#isPrefixed(call))
      return original === undefined ? [] : [{ downstream, original }]
    })
    return owners.length === 1 ? owners[0] : undefined
  }
}

/** `undefined`: a name of this form is not one of that server. */
const originalOf = ({ method, target, params }: Call, { options }: Downstream, isPrefixed: boolean): string | undefined => {
  const ref = method === 'completion/complete' ? params.object('ref') : undefined
  const name = ref === undefined ? target : (ref.text('name') ?? ref.text('uri'))
  if (name === undefined || !isPrefixed) return name
  const alias = Object.keys(options.alias).find((original) => options.alias[original] === name)
  if (alias !== undefined) return alias
  if (method === 'resources/read' || ref?.text('uri') !== undefined)
    return restoreUri(name, (prefix) => prefix === options.prefix)?.original
  const start = `${options.prefix}__`
  return name.startsWith(start) && name.length > start.length ? name.slice(start.length) : undefined
}
