/** What both generations of the official client take as their `OAuthClientProvider`: prints where a person must go, and remembers all. */
import { randomUUID } from 'node:crypto'
import { print } from './lines.ts'

interface Client {
  readonly client_id: string
}
interface Tokens {
  readonly access_token: string
  readonly token_type: string
  readonly refresh_token?: string | undefined
}

export class Person {
  readonly redirectUrl: string
  readonly clientMetadata: {
    redirect_uris: string[]
    client_name: string
    grant_types: string[]
    response_types: string[]
    token_endpoint_auth_method: string
  }
  #client: Client | undefined
  #tokens: Tokens | undefined
  #verifier = ''

  /** `clientId`: one that an administrator registered; without, the host registers itself. */
  constructor(redirect: string, clientId: string | undefined) {
    this.redirectUrl = redirect
    this.#client = clientId === undefined ? undefined : { client_id: clientId }
    this.clientMetadata = {
      redirect_uris: [redirect],
      client_name: 'A host on the official SDK',
      grant_types: ['authorization_code', 'refresh_token'],
      response_types: ['code'],
      token_endpoint_auth_method: 'none',
    }
  }

  state(): string {
    return randomUUID()
  }
  clientInformation(): Client | undefined {
    return this.#client
  }
  saveClientInformation(client: Client): void {
    this.#client = client
  }
  tokens(): Tokens | undefined {
    return this.#tokens
  }
  saveTokens(tokens: Tokens): void {
    this.#tokens = tokens
  }
  saveCodeVerifier(verifier: string): void {
    this.#verifier = verifier
  }
  codeVerifier(): string {
    return this.#verifier
  }
  redirectToAuthorization(url: URL): void {
    print({ open: url.href })
  }
}
