/**
 * `npm run peers idp`: real identity providers with the recipes of docs/identity as they stand, a real Chromium, and the gateway before
 * a server for all and one at which each caller signs in. Every step is a sentence that is printed when it was seen.
 */
import type { Configuration } from '../../../src/config/options.ts'
import { PER_USER } from '../../support/credentials.ts'
import { fake, FakeDownstream } from '../../support/fake-downstream.ts'
import { FakeIssuer, protect } from '../../support/fake-issuer.ts'
import { startGateway } from '../../support/gateway.ts'
import { launchBrowser } from '../../support/real-browser.ts'
import { DEX } from './dex.ts'
import { playHosts, setUpHosts } from './hosts.ts'
import { KEYCLOAK } from './keycloak.ts'
import { playPeople } from './people.ts'
import type { ProviderKind } from './provider.ts'
import { recipeOf } from './recipe.ts'
import type { Recipe } from './recipe.ts'

const KINDS: readonly ProviderKind[] = [KEYCLOAK, DEX]

/** `names`: of the providers; all where there are none. Throws for an unknown one. */
export const runProviders = async (names: readonly string[], tell: (line: string) => void): Promise<readonly string[]> => {
  const unknown = names.find((name) => KINDS.every((kind) => kind.name !== name))
  if (unknown !== undefined) throw new Error(`no provider ${unknown}; there are: ${KINDS.map(({ name }) => name).join(', ')}`)
  const missed: string[] = []
  const seen = (sentence: string, isSeen: boolean): void => {
    tell(`${isSeen ? 'seen' : 'NOT SEEN'}: ${sentence}`)
    if (!isSeen) missed.push(sentence)
  }
  await setUpHosts()
  for (const kind of KINDS) {
    if (names.length > 0 && !names.includes(kind.name)) continue
    tell(kind.name)
    await kind.setUp()
    await play(kind, seen)
  }
  return missed
}

/** What the pages name for a setup without the proxy. */
const WITHOUT_PROXY: Readonly<Record<ProviderKind['name'], Recipe>> = {
  keycloak: { edit: [['    registration: proxy\n', '    clients: [{ client_id: mcp-host }]\n']] },
  dex: { block: 1 },
}

const play = async (kind: ProviderKind, seen: (sentence: string, isSeen: boolean) => void): Promise<void> => {
  await using stack = new AsyncDisposableStack()
  const issuerOfServer = stack.use(await FakeIssuer.start())
  const personal = stack.use(await FakeDownstream.start(fake.of({ kind: 'modern http', tools: ['echo'] })))
  protect(personal, issuerOfServer)
  const gateway = stack.use(
    await startGateway({
      servers: { shared: fake.offering('echo') },
      fakes: new Map([['personal', personal]]),
      options: { personal: { credential: PER_USER, displayName: 'Personal' } },
      early: true,
    }),
  )
  const provider = stack.use(await kind.start(gateway.url.origin))
  const browser = await launchBrowser()
  stack.defer(() => browser.close())
  const origins = { gateway: gateway.url.origin, provider: provider.origin }
  const { configuration } = gateway.running
  const apply = async ({ host, gateway: { scopes, toolsets } }: Configuration): Promise<void> => {
    const own = { ...configuration, host: { ...configuration.host, auth: host.auth } }
    await gateway.running.apply({ ...own, gateway: { ...configuration.gateway, scopes, toolsets } }, new Set())
  }
  await apply(await recipeOf(kind.name, origins))
  await playPeople({ kind, gateway, browser, issuerOfServer, seen })
  await playHosts({ kind, gateway, browser, isProxied: true, seen })
  await apply(await recipeOf(kind.name, origins, WITHOUT_PROXY[kind.name]))
  await playHosts({ kind, gateway, browser, isProxied: false, seen })
}
