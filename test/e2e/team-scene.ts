/** The team of `examples/team/` behind a real authorization server, and requests to its Trunkline as anybody may write them. */
import type { Person } from '../../examples/team/hosts.ts'
import { startTeam } from '../../examples/team/team.ts'
import type { Team } from '../../examples/team/team.ts'
import { startAuthorizationServer, USERS } from '../support/authorization-server.ts'
import type { AuthorizationServer, User } from '../support/authorization-server.ts'
import { bearer } from '../support/credentials.ts'
import { mirrors } from '../support/fakes/http-hosts.ts'
import { KEY, MODERN, request } from '../support/fakes/messages.ts'
import type { JsonMap, Message } from '../support/fakes/messages.ts'
import { send } from '../support/fakes/raw-http.ts'

/** How a request was answered: a status, and what of the body matters. */
export interface Seen {
  readonly status: number
  readonly code?: number | undefined
  readonly result?: JsonMap | undefined
  readonly isError?: boolean
}

export interface Sender {
  /** `/mcp` by default. */
  readonly path?: string
  readonly token?: string
  /** Of a legacy host. */
  readonly session?: string
  readonly origin?: string
}

export interface Scene extends AsyncDisposable {
  readonly issuer: AuthorizationServer
  readonly team: Team
  readonly people: Readonly<Record<User, Person>>
  /** What is to be in no log: every token that was sent, and what is added. */
  readonly secrets: Set<string>
  at(path: string): URL
  post(sender: Sender, method: string, params?: JsonMap): Promise<Seen>
  /** The id of a new legacy session. */
  sessionOf(token: string): Promise<string>
}

const META = { [KEY.version]: MODERN, [KEY.capabilities]: { elicitation: { form: {}, url: {} } } }
/** Parameters of a modern host whose person can be asked. */
export const modern = (params: JsonMap = {}): JsonMap => ({ ...params, _meta: META })
export const call = (name: string, args: JsonMap = {}, more: JsonMap = {}): JsonMap => modern({ name, arguments: args, ...more })

export const startScene = async (): Promise<Scene> => {
  const issuer = await startAuthorizationServer({ scopes: ['mcp:connect', 'mcp:desk'] })
  const team = await startTeam(issuer.issuer)
  const secrets = new Set<string>()
  const at = (path: string): URL => new URL(path, team.trunkline.url)
  const personOf = async (name: User): Promise<[User, Person]> => {
    const { access_token: token } = await issuer.userToken(name, { resource: team.trunkline.url.href })
    secrets.add(token)
    return [name, { name, token, signIn: (url) => issuer.signIn(url, name) }]
  }
  const people = await Promise.all((Object.keys(USERS) as User[]).map(personOf))
  return {
    issuer,
    team,
    people: Object.fromEntries(people) as Record<User, Person>,
    secrets,
    at,
    post: async ({ path = '/mcp', token, session, origin }, method, params = {}) => {
      const body = request(1, method, params)
      if (token !== undefined) secrets.add(token)
      const reply = await send(at(path), {
        headers: {
          ...(token !== undefined && bearer(token)),
          ...(session === undefined ? mirrors(JSON.parse(body) as Message) : { 'mcp-session-id': session }),
          origin,
        },
        body,
      })
      const text = await reply.body
      const answer = (text.startsWith('{') ? JSON.parse(text) : {}) as { error?: { code: number }; result?: JsonMap }
      return { status: reply.status, code: answer.error?.code, result: answer.result }
    },
    sessionOf: async (token) => {
      const clientInfo = { name: 'host', version: '1' }
      const body = request(1, 'initialize', { protocolVersion: '2025-11-25', capabilities: {}, clientInfo })
      const { headers } = await send(at('/mcp'), { headers: bearer(token), body })
      const id = String(headers['mcp-session-id'])
      secrets.add(id)
      return id
    },
    [Symbol.asyncDispose]: async () => {
      await team[Symbol.asyncDispose]()
      await issuer[Symbol.asyncDispose]()
    },
  }
}
