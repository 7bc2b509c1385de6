/**
 * An authorization server that does what a test says, and counts: rotation-strict refresh tokens (a used one ends the grant), codes
 * that are good once, everybody consents. It shares no code with `src/`. `protect` puts it before a fake MCP server.
 */
import { createHash, randomUUID } from 'node:crypto'
import { createServer } from 'node:http'
import type { IncomingMessage } from 'node:http'
import type { FakeDownstream } from './fake-downstream.ts'
import { listening } from './listening.ts'
import type { Listening } from './listening.ts'

interface Grant {
  readonly client: string
  readonly scope: string
  readonly resource: string | null
  refresh: string
  isOver: boolean
}

export interface FakeIssuerOptions {
  /** Seconds an access token is good. */
  readonly ttl?: number
  /** Members of the metadata in place of the usual ones; `undefined` takes one out. */
  readonly metadata?: Readonly<Record<string, unknown>>
}

export class FakeIssuer implements AsyncDisposable {
  readonly url: string
  /** Every grant that was given: `authorization_code`, `refresh_token` … */
  readonly grants: string[] = []
  /** Parameters of authorization and token requests, and registrations. */
  readonly authorizations: URLSearchParams[] = []
  readonly exchanges: URLSearchParams[] = []
  readonly registrations: Record<string, unknown>[] = []
  /** Whether a token request is refused, whatever it brings. */
  refuses: (params: URLSearchParams) => boolean = () => false
  /** What it answers then. */
  refusal: Readonly<Record<string, string>> = { error: 'invalid_request' }
  /** Token requests are answered with this status and nothing else; `silent`: no request is answered at all. */
  away: number | 'silent' | undefined
  readonly #server: Listening
  readonly #options: FakeIssuerOptions
  readonly #codes = new Map<string, { challenge: string; redirect: string; grant: Grant }>()
  readonly #tokens = new Map<string, Grant>()
  /** By every refresh token there was. */
  readonly #refreshable = new Map<string, Grant>()

  private constructor(server: Listening, options: FakeIssuerOptions) {
    this.#server = server
    this.#options = options
    this.url = server.url
  }

  static async start(options: FakeIssuerOptions = {}): Promise<FakeIssuer> {
    const server = createServer()
    const issuer = new FakeIssuer(await listening(server), options)
    server.on('request', (request, response) => {
      void bodyOf(request).then((body) => {
        if (issuer.away === 'silent') return
        if (issuer.away !== undefined && request.url === '/token') {
          response.writeHead(issuer.away).end()
          return
        }
        const { status = 200, headers = {}, json } = issuer.#answer(new URL(request.url ?? '/', issuer.url), body)
        response.writeHead(status, { 'content-type': 'application/json', ...headers }).end(JSON.stringify(json ?? {}))
      })
    })
    return issuer
  }

  /** The grant behind a token that is good now. */
  find(token: string | undefined): Grant | undefined {
    const grant = this.#tokens.get(token ?? '')
    return grant?.isOver === true ? undefined : grant
  }

  /** Every access token is good no more; refresh tokens are. */
  expire(): void {
    this.#tokens.clear()
  }

  /** Nothing is good any more. */
  revoke(): void {
    for (const grant of this.#tokens.values()) grant.isOver = true
  }

  [Symbol.asyncDispose](): PromiseLike<void> {
    return this.#server[Symbol.asyncDispose]()
  }

  #answer(url: URL, body: string): { status?: number; headers?: Record<string, string>; json?: unknown } {
    if (url.pathname.startsWith('/.well-known/')) return { json: this.#metadata() }
    if (url.pathname === '/authorize') return this.#authorize(url.searchParams)
    if (url.pathname === '/token') return this.#token(new URLSearchParams(body))
    if (url.pathname !== '/register') return { status: 404 }
    this.registrations.push(JSON.parse(body) as Record<string, unknown>)
    return { status: 201, json: { client_id: `client-${this.registrations.length}`, token_endpoint_auth_method: 'none' } }
  }

  #metadata(): object {
    const { url } = this
    return {
      issuer: url,
      authorization_endpoint: `${url}/authorize`,
      token_endpoint: `${url}/token`,
      registration_endpoint: `${url}/register`,
      code_challenge_methods_supported: ['S256'],
      token_endpoint_auth_methods_supported: ['none'],
      authorization_response_iss_parameter_supported: true,
      ...this.#options.metadata,
    }
  }

  #authorize(params: URLSearchParams) {
    this.authorizations.push(params)
    const code = randomUUID()
    const back = new URL(params.get('redirect_uri') ?? '')
    const grant = grantOf(params)
    this.#codes.set(code, { challenge: params.get('code_challenge') ?? '', redirect: back.href, grant })
    for (const [name, value] of [
      ['code', code],
      ['state', params.get('state') ?? ''],
      ['iss', this.url],
    ])
      back.searchParams.set(name!, value!)
    return { status: 302, headers: { location: back.href } }
  }

  #token(params: URLSearchParams) {
    this.exchanges.push(params)
    if (this.refuses(params)) return { status: 400, json: this.refusal }
    const kind = params.get('grant_type')
    const isGiven = kind === 'client_credentials' || kind === 'urn:ietf:params:oauth:grant-type:token-exchange'
    const grant = isGiven ? grantOf(params) : kind === 'refresh_token' ? this.#refreshed(params) : this.#redeemed(params)
    if (grant === undefined) return { status: 400, json: { error: 'invalid_grant' } }
    this.grants.push(params.get('grant_type') ?? '')
    this.#refreshable.set(grant.refresh, grant)
    const access = `access-${randomUUID()}`
    this.#tokens.set(access, grant)
    const { ttl = 3_600 } = this.#options
    return {
      json: { access_token: access, token_type: 'Bearer', expires_in: ttl, refresh_token: grant.refresh, scope: grant.scope },
    }
  }

  #redeemed(params: URLSearchParams): Grant | undefined {
    const found = this.#codes.get(params.get('code') ?? '')
    this.#codes.delete(params.get('code') ?? '')
    const challenge = createHash('sha256')
      .update(params.get('code_verifier') ?? '')
      .digest('base64url')
    const isGood = found?.challenge === challenge && found.redirect === params.get('redirect_uri')
    return isGood ? found.grant : undefined
  }

  /** A refresh token that was used before is a theft: the whole grant ends. */
  #refreshed(params: URLSearchParams): Grant | undefined {
    const used = params.get('refresh_token') ?? ''
    const grant = this.#refreshable.get(used)
    if (grant === undefined || grant.isOver) return undefined
    if (grant.refresh !== used) {
      grant.isOver = true
      return undefined
    }
    grant.refresh = randomUUID()
    return grant
  }
}

const grantOf = (params: URLSearchParams): Grant => ({
  client: params.get('client_id') ?? '',
  scope: params.get('scope') ?? '',
  resource: params.get('resource'),
  refresh: randomUUID(),
  isOver: false,
})

/** Only requests with a good token reach the server; `scopeOf`: what a message takes beside that. */
export const protect = (
  server: FakeDownstream,
  issuer: FakeIssuer,
  scopeOf: (method: string) => string | undefined = () => undefined,
): void => {
  const { url } = server.address as { url: URL }
  server.intercept = (request, response, body) => {
    const metadata = `${url.origin}/.well-known/oauth-protected-resource${url.pathname}`
    if (request.url?.startsWith('/.well-known/') === true) {
      const document = { resource: url.href, authorization_servers: [issuer.url] }
      const isOurs = request.url === new URL(metadata).pathname
      response.writeHead(isOurs ? 200 : 404, { 'content-type': 'application/json' }).end(JSON.stringify(document))
      return true
    }
    const grant = issuer.find(request.headers.authorization?.replace(/^Bearer /, ''))
    const method = /"method":"([^"]+)"/.exec(body)?.[1] ?? ''
    const scope = scopeOf(method)
    if (grant !== undefined && (scope === undefined || grant.scope.split(' ').includes(scope))) return false
    const error = grant === undefined ? '' : 'error="insufficient_scope", '
    const wanted = scope === undefined ? '' : `scope="${scope}", `
    response
      .writeHead(grant === undefined ? 401 : 403, {
        'www-authenticate': `Bearer ${error}${wanted}resource_metadata="${metadata}"`,
      })
      .end()
    return true
  }
}

const bodyOf = async (request: IncomingMessage): Promise<string> => {
  const chunks: Buffer[] = []
  for await (const chunk of request as AsyncIterable<Buffer>) chunks.push(chunk)
  return Buffer.concat(chunks).toString()
}
