/**
 * T-40: the link to sign in at a server reaches another person, by a shared chat or on purpose. Whoever opens it must prove to be the
 * caller that it was made for before anything begins, so that no account is bound to a caller that is not its owner's.
 */
import { describe, expect, test, vi } from 'vitest'
import { Browser } from '../../support/browser.ts'
import type { Visited } from '../../support/browser.ts'
import { PER_USER, tokenOf, TWO_TOKENS } from '../../support/credentials.ts'
import { fake, FakeDownstream } from '../../support/fake-downstream.ts'
import { modernHttp, toolNames } from '../../support/fake-host.ts'
import type { Host } from '../../support/fake-host.ts'
import { FakeIssuer, protect } from '../../support/fake-issuer.ts'
import { startGateway } from '../../support/gateway.ts'
import type { TestGateway } from '../../support/gateway.ts'

const SIGN_IN = { name: 'a__sign_in' }

interface Scene extends AsyncDisposable {
  readonly issuer: FakeIssuer
  readonly gateway: TestGateway
  /** Hosts of two people. */
  readonly ana: Host
  readonly bob: Host
}

const scene = async (): Promise<Scene> => {
  await using stack = new AsyncDisposableStack()
  const issuer = stack.use(await FakeIssuer.start())
  const server = stack.use(await FakeDownstream.start(fake.of({ kind: 'modern http', tools: ['echo'] })))
  protect(server, issuer)
  const gateway = stack.use(
    await startGateway({
      servers: {},
      fakes: new Map([['a', server]]),
      options: { a: { credential: PER_USER } },
      host: { auth: TWO_TOKENS },
    }),
  )
  const hostOf = async (letter: string): Promise<Host> =>
    stack.use(
      await modernHttp.connect(gateway, { capabilities: { elicitation: { form: {}, url: {} } }, token: () => tokenOf(letter) }),
    )
  const [ana, bob] = [await hostOf('A'), await hostOf('B')]
  const owned = stack.move()
  return { issuer, gateway, ana, bob, [Symbol.asyncDispose]: () => owned.disposeAsync() }
}

const linkFor = async (host: Host): Promise<string> => {
  const { inputRequests } = await host.call('tools/call', SIGN_IN)
  const { 'sign-in': question } = inputRequests as Record<string, { params: { url: string } }>
  return question!.params.url
}
/** The form of the page, filled in. */
const proving = ({ text }: Visited, proof: string | undefined): URLSearchParams =>
  new URLSearchParams({
    mark: /name="mark" value="([^"]*)"/.exec(text)?.[1] ?? '',
    ...(proof !== undefined && { proof }),
  })
/** Where the browser comes back to after consent at the server's own issuer. */
const callbackOf = async (browser: Browser, link: string, proof: string): Promise<string> => {
  const page = await browser.open(link)
  const left = await browser.step(page.url, proving(page, proof))
  const returning = await browser.step(left.headers.get('location') ?? '')
  return returning.headers.get('location') ?? ''
}

describe('a link that another person opens', () => {
  test.each([
    ['without a proof', undefined],
    ['with an empty one', ''],
    ['with a guess', 'tlk_guess'],
    ['with the token of the other person', tokenOf('B')],
    ['with the token of the other person as a header', `Bearer ${tokenOf('B')}`],
    ['with the name of the caller', 'a'],
  ])('T-40 leads nowhere %s, and no account is bound', async (_name, proof) => {
    await using stage = await scene()
    const link = await linkFor(stage.ana)
    const browser = new Browser()
    const page = await browser.open(link)
    const refused = await browser.step(page.url, proving(page, proof))
    expect(refused.status).toBe(403)
    expect(refused.headers.get('location')).toBeNull()
    expect(stage.issuer.authorizations).toEqual([])
    for (const host of [stage.ana, stage.bob]) expect(await toolNames(host)).toEqual(['a__sign_in'])
  })

  test('T-40 is not helped by a link of that person: the proof for one is not a proof for the other', async () => {
    await using stage = await scene()
    const [anas, bobs] = [await linkFor(stage.ana), await linkFor(stage.bob)]
    expect(anas).not.toBe(bobs)
    const browser = new Browser()
    const own = await browser.open(bobs)
    await browser.step(own.url, proving(own, tokenOf('B')))
    const page = await browser.open(anas)
    expect((await browser.step(page.url, proving(page, tokenOf('B')))).status).toBe(403)
    // The consent that was given for the one is not taken at the address of the other.
    expect((await browser.step(page.url, proving(own, tokenOf('B')))).status).toBe(403)
    expect(stage.issuer.authorizations).toEqual([])
    expect(await toolNames(stage.ana)).toEqual(['a__sign_in'])
  })
})

describe('a link that has been used', () => {
  test('T-40 is over: neither the link nor the way back leads in a second time, from any browser', async () => {
    await using stage = await scene()
    const link = await linkFor(stage.ana)
    const browser = new Browser()
    const callback = await callbackOf(browser, link, tokenOf('A'))
    expect((await browser.open(callback)).status).toBe(200)
    await vi.waitFor(async () => expect(await toolNames(stage.ana)).toEqual(['a__echo']))
    for (const another of [browser, new Browser()]) {
      expect((await another.open(link)).status).toBe(404)
      expect((await another.open(callback)).status).toBe(400)
    }
    expect(stage.issuer.grants).toEqual(['authorization_code'])
    expect(await toolNames(stage.bob)).toEqual(['a__sign_in'])
  })

  test('T-40 the way back of one person, stolen, binds nothing in the browser of another, and is spent', async () => {
    await using stage = await scene()
    const [ana, bob] = [new Browser(), new Browser()]
    const stolen = await callbackOf(ana, await linkFor(stage.ana), tokenOf('A'))
    await callbackOf(bob, await linkFor(stage.bob), tokenOf('B'))
    expect((await bob.open(stolen)).status).toBe(400)
    expect((await ana.open(stolen)).status).toBe(400)
    expect(stage.issuer.exchanges).toEqual([])
    for (const host of [stage.ana, stage.bob]) expect(await toolNames(host)).toEqual(['a__sign_in'])
  })

  test('T-40 the state of one way back with the code of another is refused', async () => {
    await using stage = await scene()
    const [ana, bob] = [new Browser(), new Browser()]
    const anas = new URL(await callbackOf(ana, await linkFor(stage.ana), tokenOf('A')))
    const bobs = new URL(await callbackOf(bob, await linkFor(stage.bob), tokenOf('B')))
    // Bob signs his account in under the way of Ana: the code is bound to the verifier of his own way.
    anas.searchParams.set('code', bobs.searchParams.get('code') ?? '')
    expect((await ana.open(anas)).status).toBe(502)
    expect(await toolNames(stage.ana)).toEqual(['a__sign_in'])
  })
})
