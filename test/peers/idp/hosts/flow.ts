/** What a host on an official SDK does with its own OAuth flow: it signs in, calls a tool, and renews its token. */
import { awaitCode } from './callback.ts'
import { print } from './lines.ts'
import { Person } from './person.ts'

/** What is used of a client of either SDK. */
export interface SignedIn {
  listTools(): Promise<{ readonly tools: readonly { readonly name: string }[] }>
  callTool(call: { readonly name: string; readonly arguments: Record<string, unknown> }): Promise<unknown>
  close(): Promise<void>
}

/** The parts in which both SDKs differ. */
export interface Flow<Transport> {
  readonly open: (url: URL, authProvider: Person) => Transport
  /** Rejects with `Unauthorized` where the sign-in is still to be finished. */
  readonly connect: (transport: Transport) => Promise<SignedIn>
  /** `query`: of the redirect that brings the code. */
  readonly finish: (transport: Transport, query: URLSearchParams) => Promise<void>
  /** Resolves with `AUTHORIZED` where the token was renewed. */
  readonly renew: (authProvider: Person, serverUrl: string) => Promise<string>
}

/** Prints what happened as one line of JSON. */
export const signInAndCall = async <Transport>({ open, connect, finish, renew }: Flow<Transport>): Promise<void> => {
  const [url = '', clientId] = process.argv.slice(2)
  await using callback = await awaitCode()
  const authProvider = new Person(callback.redirect, clientId)
  try {
    const first = open(new URL(url), authProvider)
    await connect(first).catch((error: unknown) => {
      if (!String(error).includes('Unauthorized')) throw error
    })
    await finish(first, (await callback.returned).searchParams)
    const client = await connect(open(new URL(url), authProvider))
    const tools = (await client.listTools()).tools.map(({ name }) => name)
    const before = authProvider.tokens()?.access_token
    const renewed = authProvider.tokens()?.refresh_token !== undefined && (await renew(authProvider, url)) === 'AUTHORIZED'
    const result = await client.callTool({ name: 'shared__echo', arguments: {} })
    print({ tools, text: JSON.stringify(result), renewed: renewed && authProvider.tokens()?.access_token !== before })
    await client.close()
  } catch (error) {
    print({ failed: String(error) })
  }
}
