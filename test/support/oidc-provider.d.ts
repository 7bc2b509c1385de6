/** The little of oidc-provider that the tests use; the package brings no types. */
declare module 'oidc-provider' {
  import type { IncomingMessage, ServerResponse } from 'node:http'

  interface Interaction {
    readonly prompt: { readonly name: 'login' | 'consent'; readonly details: Readonly<Record<string, unknown>> }
    readonly params: Readonly<Record<string, unknown>>
    readonly session?: { readonly accountId?: string }
    readonly grantId?: string
  }
  interface Grant {
    addOIDCScope(scope: string): void
    addResourceScope(resource: string, scope: string): void
    save(): Promise<string>
  }
  export class Provider {
    constructor(issuer: string, configuration: object)
    proxy: boolean
    readonly Grant: { new (facts: { accountId: string | undefined; clientId: string }): Grant; find(id: string): Promise<Grant> }
    callback(): (request: IncomingMessage, response: ServerResponse) => void
    interactionDetails(request: IncomingMessage, response: ServerResponse): Promise<Interaction>
    interactionFinished(
      request: IncomingMessage,
      response: ServerResponse,
      result: object,
      options: { mergeWithLastSubmission: boolean },
    ): Promise<void>
    on(event: string, listener: (...args: readonly unknown[]) => void): void
  }
}
