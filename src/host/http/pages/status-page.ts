/**
 * The page for people who open the MCP address in a browser: how a host is connected, the servers, and where to sign in. With
 * authentication it lists servers only after the person has entered a token, which is used for one answer and not stored.
 *
 *     GET /, GET /mcp   with Accept: text/html, and no event stream asked for
 *     POST /            the same with a token
 */
import { authMode, takesTokenByHand } from '../../../auth/inbound/verify/inbound-options.ts'
import type { HostClientId } from '../../../auth/inbound/verify/inbound-options.ts'
import { LOCAL } from '../../../auth/identity.ts'
import type { Identity } from '../../../auth/identity.ts'
import type { HttpRequest } from '../../../transport/http1/server/request/http-request.ts'
import { cleanMessage } from '../../../wire/protocol/label.ts'
import type { ServerCard } from '../../../catalog/server-card.ts'
import { reportRefused } from '../../denials.ts'
import type { ConnectGuide, ListenerContext } from '../../listener-context.ts'
import { escaped, page, pageHeaders } from './page.ts'

const MAX_FORM_BYTES = 16 * 1024
const FORM = 'application/x-www-form-urlencoded'
const HOST = /^(\[[\da-f:.]+\]|[\w.-]+)(:\d{1,5})?$/i

export interface StatusSource {
  readonly context: Pick<ListenerContext, 'core' | 'guides' | 'options' | 'denied' | 'log'>
  /** Origin and path prefix under which browsers reach the gateway. */
  readonly origin: () => Promise<string>
  /** `undefined`: browsers reach the gateway at a bound address. */
  readonly publicUrl: () => string | undefined
  /** Resolves with the identity of a token; `undefined`: no authentication. */
  readonly identityOf: () => ((token: string) => Promise<Identity | undefined>) | undefined
}

/** The content of the page. */
interface Shown {
  readonly url: string
  readonly guides: readonly ConnectGuide[]
  readonly mode: ReturnType<typeof authMode>
  /** Client ids that hosts may be configured with. */
  readonly clients: readonly HostClientId[]
  /** `undefined`: no token was entered. */
  readonly identity: Identity | undefined
  readonly servers: readonly (ServerCard & { readonly signIn: string | undefined })[]
  /** Target of the form. */
  readonly action: string
  readonly problem?: string
}

/** Whether a browser requests the page. Hosts request JSON and events; scripts accept anything. */
export const asksForPage = (request: HttpRequest, path: string): boolean => {
  if (request.path !== '/' && request.path !== path) return false
  if (request.method === 'POST') return request.path === '/' && request.header('content-type')?.startsWith(FORM) === true
  const accept = request.header('accept') ?? ''
  return request.method === 'GET' && accept.includes('text/html') && !accept.includes('text/event-stream')
}

export class StatusPage {
  readonly #source: StatusSource

  constructor(source: StatusSource) {
    this.#source = source
  }

  handle(request: HttpRequest): void {
    const identityOf = this.#source.identityOf()
    if (request.method === 'GET') return void this.#show(request, identityOf === undefined ? LOCAL : undefined)
    request.readBody(MAX_FORM_BYTES, (body) => {
      const token = Buffer.isBuffer(body) ? (new URLSearchParams(body.toString()).get('token') ?? '') : ''
      void this.#identify(request, identityOf, token.trim())
    })
  }

  async #identify(
    request: HttpRequest,
    identityOf: ((token: string) => Promise<Identity | undefined>) | undefined,
    token: string,
  ): Promise<void> {
    if (identityOf === undefined) return this.#show(request, LOCAL)
    try {
      const identity = token === '' ? undefined : await identityOf(token)
      if (identity !== undefined) return await this.#show(request, identity)
      reportRefused(this.#source.context, request, 'unauthorized', 403, { detail: 'no valid token on the page' })
      await this.#show(request, undefined, 403, 'This token is not valid here.')
    } catch (error) {
      this.#source.context.log.warn({ error: String(error) }, 'a token could not be verified')
      await this.#show(request, undefined, 503, 'The token cannot be verified now. Try again in a moment.')
    }
  }

  async #show(request: HttpRequest, identity: Identity | undefined, status = 200, problem?: string): Promise<void> {
    try {
      const { context } = this.#source
      const { auth } = context.options
      const own = await this.#source.origin()
      const host = request.header('host') ?? ''
      // The address as the person typed it, if it is a valid host name.
      const base = this.#source.publicUrl() ?? (HOST.test(host) ? `http://${host}` : own)
      const url = base + context.options.path
      const servers = identity === undefined ? [] : await this.#serversOf(identity)
      const guides = await context.guides(url, takesTokenByHand(auth))
      const action = `${new URL(base).pathname.replace(/\/$/, '')}/`
      const clients = auth?.oauth?.hostClients ?? []
      const text = statusPage({
        url,
        guides,
        mode: authMode(auth),
        clients,
        identity,
        servers,
        action,
        ...(problem !== undefined && { problem }),
      })
      request.reply(status, pageHeaders(''), [Buffer.from(text)])
    } catch (error) {
      this.#source.context.log.error(
        { error: error instanceof Error ? error.stack : String(error) },
        'the page could not be made',
      )
      request.reply(500, {})
    }
  }

  async #serversOf(identity: Identity): Promise<Shown['servers']> {
    const { core } = this.#source.context
    const cards = await core.servers(identity)
    return Promise.all(
      cards.map(async (card) => ({
        ...card,
        signIn: card.needsSignIn ? await core.signInAt(identity, card.key) : undefined,
      })),
    )
  }
}

const statusPage = (shown: Shown): string => {
  const { url, identity, mode } = shown
  const body = [
    `<p class="soft">One address for many MCP servers. Agents and editors connect to it; this page is for people.</p>`,
    `<section><h2>Connect a host</h2><p>Its address:</p><pre><code>${escaped(url)}</code></pre>`,
    CREDENTIALS[mode],
    clientsMarkup(shown),
    ...shown.guides.map(guideMarkup),
    '</section>',
    identity === undefined ? tokenForm(shown) : serversMarkup(shown, identity),
    `<footer>The command line shows more (<code>ps</code>), and enters the above for each host (<code>connect</code>).</footer>`,
  ]
  return page('Trunkline', body.join(''))
}

/** The environment variable with the token in the examples. */
export const TOKEN_VARIABLE = 'TRUNKLINE_TOKEN'

/** HTML about the credential of hosts, by `auth.mode`. */
const CREDENTIALS: Readonly<Record<Shown['mode'], string>> = {
  none: '',
  tokens: `<p>A host brings an access token of its own. The examples take it from a variable, <code>${TOKEN_VARIABLE}</code>.</p>`,
  oauth: '<p>A host opens a browser, in which you sign in, and needs no token.</p>',
  any: '<p>A host opens a browser, in which you sign in. One that cannot brings an access token of its own, in its <code>Authorization</code> header.</p>',
}

/** Client ids are not secret. */
const clientsMarkup = ({ clients }: Shown): string => {
  if (clients.length === 0) return ''
  const rows = clients.map(
    ({ id, name }) => `<li><code>${escaped(id)}</code><span>${escaped(cleanMessage(name ?? 'any host'))}</span></li>`,
  )
  return `<p>Client ids, for hosts that ask for one:</p><ul>${rows.join('')}</ul>`
}

const guideMarkup = ({ label, file, text, afterwards, link }: ConnectGuide): string => {
  const install = link === undefined ? '' : `<p><a href="${escaped(link)}">Add to ${escaped(label)}</a>, or in its file:</p>`
  return `<details><summary>${escaped(label)}</summary><div>${install}<p><code>${escaped(file)}</code></p><pre><code>${escaped(text.trimEnd())}</code></pre><p class="soft">${escaped(label)}: ${escaped(afterwards)}.</p></div></details>`
}

const tokenForm = ({ action, problem }: Shown): string =>
  [
    '<section><h2>Your servers</h2><p>Show your access token to see which servers you have and where to sign in. It is used for this one page and kept nowhere.</p>',
    problem === undefined ? '' : `<p class="bad" role="alert">${escaped(problem)}</p>`,
    `<form method="post" action="${escaped(action)}"><label for="token">Access token</label><input id="token" type="password" name="token" autocomplete="off" required><button>Show</button></form></section>`,
  ].join('')

const serversMarkup = ({ servers, mode }: Shown, { principal }: Identity): string => {
  const who = mode !== 'none' ? `<p class="soft">Signed in as ${escaped(cleanMessage(principal))}.</p>` : ''
  const list =
    servers.length === 0
      ? '<p>There are none yet. The command <code>add</code> adds one.</p>'
      : `<ul>${servers.map(serverMarkup).join('')}</ul>`
  return `<section><h2>Your servers</h2>${who}${list}</section>`
}

const serverMarkup = ({ displayName, state, needsSignIn, tools, signIn }: Shown['servers'][number]): string => {
  const name = cleanMessage(displayName)
  const said = needsSignIn
    ? `<span class="bad">needs sign-in</span>${signIn === undefined ? '' : `<a href="${escaped(signIn)}" aria-label="Sign in to ${escaped(name)}">Sign in</a>`}`
    : state === 'away'
      ? '<span class="bad">not available</span>'
      : `<span>${state}</span>`
  const count = needsSignIn ? '' : `<span class="soft">${tools === 1 ? '1 tool' : `${tools} tools`}</span>`
  return `<li><span>${escaped(name)}</span>${said}${count}</li>`
}
