/** What is tried at the door of a running Trunkline: by whom, what comes of it, and what the audit log says of it (T-05 to T-08, T-38). */
import { randomUUID } from 'node:crypto'
import { expect } from 'vitest'
import type { User } from '../support/authorization-server.ts'
import { Browser } from '../support/browser.ts'
import type { Visited } from '../support/browser.ts'
import type { JsonMap } from '../support/fakes/messages.ts'
import { claims, FORGED } from './team-forgeries.ts'
import { call, modern } from './team-scene.ts'
import type { Scene, Seen } from './team-scene.ts'

/** A page that a browser was shown. */
const page = ({ status }: Visited): Seen => ({ status })

/** Somebody new: a token, and a link to sign in to the desk. */
export const newcomer = async (
  scene: Scene,
): Promise<{ readonly token: string; readonly name: string; readonly link: string }> => {
  const name = `dev-${randomUUID()}`
  const token = await scene.issuer.sign(claims(scene, { sub: name }))
  const { result } = await scene.post({ token }, 'tools/call', call('desk__sign_in'))
  const { 'sign-in': question } = (result ?? {})['inputRequests'] as Record<string, { params: { url: string } }>
  scene.secrets.add(question!.params.url.split('/').at(-1) ?? '')
  return { token, name, link: question!.params.url }
}
/** Opens a link, and presses its button with this token for a proof. */
const press = async (browser: Browser, link: string, token: string): Promise<Visited> => {
  const { text, url } = await browser.open(link)
  const mark = /name="mark" value="([^"]*)"/.exec(text)?.[1] ?? ''
  return browser.step(url, new URLSearchParams({ mark, proof: token }))
}
/** Where a browser that has consented and signed in is sent back to, with the code. */
const returning = async (scene: Scene, browser: Browser): Promise<URL> => {
  const { link, token, name } = await newcomer(scene)
  const away = await press(browser, link, token)
  const url = await scene.issuer.signIn(new URL(away.headers.get('location') ?? ''), name as User)
  scene.secrets.add(url.searchParams.get('code') ?? '')
  return url
}
/** A question that bob was asked, and its answer: what he, or somebody else, may send then. */
const answered = async (scene: Scene, args: JsonMap, answer: JsonMap): Promise<JsonMap> => {
  const { result } = await scene.post({ token: scene.people.bob.token }, 'tools/call', call('memory__delete_entities', args))
  const [key = ''] = Object.keys(result?.['inputRequests'] ?? {})
  return { requestState: result?.['requestState'], inputResponses: { [key]: answer } }
}
const approved = (scene: Scene, args: JsonMap): Promise<JsonMap> => answered(scene, args, { action: 'accept', content: {} })
const ARGS = { entityNames: ['nobody'] }
const erase = async (scene: Scene, token: string, path: string, args: JsonMap, more: JsonMap): Promise<Seen> => {
  const { status, code, result } = await scene.post({ token, path }, 'tools/call', call('memory__delete_entities', args, more))
  return { status, code, isError: result?.['isError'] === true }
}

export interface Attack {
  readonly seen: Seen
  /** What the audit log says of it. */
  readonly denied: JsonMap
  readonly act: (scene: Scene) => Promise<Seen>
}
const unauthorized = { status: 401, reason: 'unauthorized' }
const notFound = { seen: { status: 404 }, denied: { status: 404, reason: 'path' } }
const unknown = (name: string) => ({ seen: { status: 200, code: -32602 }, denied: { reason: 'unknown', name } })
/** By what is tried. */
export const ATTACKS: Readonly<Record<string, Attack>> = {
  'T-04 no token': { seen: { status: 401 }, denied: unauthorized, act: (scene) => scene.post({}, 'tools/list', modern()) },
  ...Object.fromEntries(
    FORGED.map(([name, forge]): [string, Attack] => [
      `T-07 B234 ${name}`,
      {
        seen: { status: 401 },
        denied: unauthorized,
        act: async (scene) => scene.post({ token: await forge(scene) }, 'tools/list', modern()),
      },
    ]),
  ),
  'T-07 a token in the query': {
    seen: { status: 400 },
    denied: { status: 400, reason: 'invalid', path: '/mcp' },
    act: (scene) => scene.post({ path: `/mcp?access_token=${scene.people.alice.token}` }, 'tools/list', modern()),
  },
  'a token of a machine in no group': {
    seen: { status: 403 },
    denied: { status: 403, reason: 'forbidden' },
    act: async (scene) =>
      scene.post({ token: await scene.issuer.machineToken({ resource: scene.team.trunkline.url.href }) }, 'tools/list', modern()),
  },
  'T-01 a page of another site': {
    seen: { status: 403 },
    denied: { status: 403, reason: 'origin' },
    act: (scene) => scene.post({ token: scene.people.alice.token, origin: 'https://evil.example' }, 'tools/list', modern()),
  },
  'T-05 the session of alice with the token of bob': {
    seen: { status: 404 },
    denied: { status: 404, reason: 'session' },
    act: async (scene) =>
      scene.post({ token: scene.people.bob.token, session: await scene.sessionOf(scene.people.alice.token) }, 'tools/list'),
  },
  'T-38 an unknown toolset': {
    ...notFound,
    act: (scene) => scene.post({ token: scene.people.carol.token, path: '/mcp/none' }, 'tools/list', modern()),
  },
  'T-03 the path of a toolset that is not for alice': {
    ...notFound,
    act: (scene) => scene.post({ token: scene.people.alice.token, path: '/mcp/ops' }, 'tools/list', modern()),
  },
  'a tool that is not for alice': {
    ...unknown('memory__delete_entities'),
    act: (scene) => scene.post({ token: scene.people.alice.token }, 'tools/call', call('memory__delete_entities', ARGS)),
  },
  'B260 a tool that is not for alice, at the path of its server': {
    ...unknown('delete_entities'),
    act: async (scene) => {
      const path = '/servers/memory/mcp'
      const { access_token: token } = await scene.issuer.userToken('alice', { resource: scene.at(path).href })
      return scene.post({ token, path }, 'tools/call', call('delete_entities', ARGS))
    },
  },
  'a tool that is not for alice, through another': {
    ...unknown('gateway__call_tool'),
    act: (scene) =>
      scene.post(
        { token: scene.people.alice.token },
        'tools/call',
        call('gateway__call_tool', { name: 'memory__delete_entities' }),
      ),
  },
  'T-06 the yes of bob, sent by carol': {
    seen: { status: 200, code: -32602 },
    denied: { reason: 'invalid', toolset: 'ops' },
    act: async (scene) => erase(scene, scene.people.carol.token, '/mcp/ops', ARGS, await approved(scene, ARGS)),
  },
  'T-06 the yes of bob to something else': {
    seen: { status: 200, code: -32602 },
    denied: { reason: 'invalid', toolset: 'ops' },
    act: async (scene) =>
      erase(scene, scene.people.bob.token, '/mcp/ops', { entityNames: ['everybody'] }, await approved(scene, ARGS)),
  },
  'T-06 the yes of bob, a second time': {
    seen: { status: 200, code: -32602 },
    denied: { reason: 'invalid', toolset: 'ops' },
    act: async (scene) => {
      const yes = await approved(scene, ARGS)
      expect(await erase(scene, scene.people.bob.token, '/mcp/ops', ARGS, yes)).toMatchObject({ status: 200, isError: false })
      return erase(scene, scene.people.bob.token, '/mcp/ops', ARGS, yes)
    },
  },
  'a question that the person answers with no': {
    seen: { status: 200, isError: true },
    denied: { reason: 'declined', rule: 'toolsets.ops.confirm', name: 'memory__delete_entities' },
    act: async (scene) =>
      erase(scene, scene.people.bob.token, '/mcp/ops', ARGS, await answered(scene, ARGS, { action: 'decline' })),
  },
  'another value for a pinned argument': {
    seen: { status: 200, result: { isError: true } },
    denied: { reason: 'invalid', name: 'shop__with_shipping', original: 'get-sum' },
    act: (scene) => scene.post({ token: scene.people.alice.token }, 'tools/call', call('shop__with_shipping', { a: 1, b: 0 })),
  },
  'T-08 B248 the link of one opened by another': {
    seen: { status: 403 },
    denied: { status: 403, reason: 'forbidden', path: '/connect' },
    act: async (scene) => page(await press(new Browser(), (await newcomer(scene)).link, scene.people.bob.token)),
  },
  'T-08 consent on a page of another browser': {
    seen: { status: 403 },
    denied: { status: 403, reason: 'forbidden', path: '/connect' },
    act: async (scene) => {
      const { link, token } = await newcomer(scene)
      const { text } = await new Browser().open(link)
      const other = new Browser()
      await other.open(link)
      const mark = /name="mark" value="([^"]*)"/.exec(text)?.[1] ?? ''
      return page(await other.step(link, new URLSearchParams({ mark, proof: token })))
    },
  },
  'T-08 a code brought back by another browser': {
    seen: { status: 400 },
    denied: { status: 400, reason: 'invalid', path: '/connect/callback' },
    act: async (scene) => page(await new Browser().open(await returning(scene, new Browser()))),
  },
  'T-08 a code brought back twice': {
    seen: { status: 400 },
    denied: { status: 400, reason: 'invalid', path: '/connect/callback' },
    act: async (scene) => {
      const browser = new Browser()
      const url = await returning(scene, browser)
      expect((await browser.open(url)).status).toBe(200)
      return page(await browser.open(url))
    },
  },
}
