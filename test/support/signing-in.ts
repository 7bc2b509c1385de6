/** A person with a browser, as the official clients want one: registers, is sent to the authorization server, signs in, comes back. */
import { REDIRECT } from './authorization-server.ts'
import type { AuthorizationServer, User } from './authorization-server.ts'

interface Metadata {
  redirect_uris: string[]
  client_name: string
  grant_types: string[]
  response_types: string[]
  token_endpoint_auth_method: string
}

/** Both generations of the official client take this as their `OAuthClientProvider`. */
export class SigningIn {
  readonly redirectUrl = REDIRECT
  readonly clientMetadata: Metadata = {
    redirect_uris: [this.redirectUrl],
    client_name: 'official client',
    grant_types: ['authorization_code', 'refresh_token'],
    response_types: ['code'],
    token_endpoint_auth_method: 'none',
  }
  /** The query of where the browser came back to, for `finishAuth`. */
  returned: URLSearchParams | undefined
  /** Scopes that were asked for, one entry for each time; `offline_access`, which is the client's own affair, aside. */
  readonly asked: string[][] = []
  readonly #server: AuthorizationServer
  readonly #user: User
  #client: { client_id: string } | undefined
  #tokens: { access_token: string; token_type: string } | undefined
  #verifier = ''

  /** `clientId`: one that need not register. */
  constructor(server: AuthorizationServer, user: User, clientId?: string) {
    this.#client = clientId === undefined ? undefined : { client_id: clientId }
    this.#server = server
    this.#user = user
  }

  clientInformation(): { client_id: string } | undefined {
    return this.#client
  }
  saveClientInformation(client: { client_id: string }): void {
    this.#client = client
  }
  tokens(): { access_token: string; token_type: string } | undefined {
    return this.#tokens
  }
  /** Without what renews it: a client that has that does not ask for more scopes. */
  saveTokens(tokens: { access_token: string; token_type: string; refresh_token?: string | undefined }): void {
    const { refresh_token: _, ...kept } = tokens
    this.#tokens = kept
  }
  saveCodeVerifier(verifier: string): void {
    this.#verifier = verifier
  }
  codeVerifier(): string {
    return this.#verifier
  }
  async redirectToAuthorization(url: URL): Promise<void> {
    const scopes = url.searchParams.get('scope')?.split(' ') ?? []
    this.asked.push(scopes.filter((scope) => scope !== 'offline_access').sort())
    this.returned = (await this.#server.signIn(url, this.#user)).searchParams
  }
}
