/** Hosts of both eras on the official SDKs, with a person in front of each who signs in where the host says, and says yes when asked. */
import { Client as ModernClient, StreamableHTTPClientTransport as ModernTransport } from '@modelcontextprotocol/client'
import { Client } from '@modelcontextprotocol/sdk/client/index.js'
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js'
import { ElicitRequestSchema } from '@modelcontextprotocol/sdk/types.js'
import { textOf } from '../run.ts'

export interface Person {
  readonly name: string
  /** What the host brings with every request, and the person shows on the page of a sign-in. */
  readonly token: string
  /** Plays the browser at an authorization URL; where it is sent in the end. */
  readonly signIn: (url: URL) => Promise<URL>
}

export interface Host extends AsyncDisposable {
  /** Names of the tools that are listed now. */
  listed(): Promise<string[]>
  /** What a tool answered, and what the person was asked meanwhile. Rejects with the error of the SDK. */
  call(name: string, args?: Record<string, unknown>): Promise<Answer>
}

export interface Answer {
  readonly text: string
  readonly isError: boolean
  /** `form`: whether to do it; `url`: to sign in. */
  readonly asked: readonly string[]
}

interface Tools {
  listTools(): Promise<{ tools: { name: string }[] }>
  callTool(params: { name: string; arguments: Record<string, unknown> }): Promise<object>
  close(): Promise<void>
}
type Question = { readonly mode?: string | undefined } | { readonly mode: 'url'; readonly url: string }
type Connect = (url: URL, person: Person) => Promise<Host>

const capabilities = { elicitation: { form: {}, url: {} } }

/** SDK 1: a session of 2025-11-25. */
export const connectLegacy: Connect = async (url, person) => {
  const client = new Client({ name: 'legacy-host', version: '1' }, { capabilities })
  const desk = frontOf(person)
  client.setRequestHandler(ElicitRequestSchema, ({ params }) => desk.answer(params))
  await client.connect(new StreamableHTTPClientTransport(url, { requestInit: desk.init }))
  return hostOf(client, desk.asked)
}

/** SDK 2, pinned to 2026-07-28. */
export const connectModern: Connect = async (url, person) => {
  const options = { capabilities, versionNegotiation: { mode: { pin: '2026-07-28' } } } as const
  const client = new ModernClient({ name: 'modern-host', version: '1' }, options)
  const desk = frontOf(person)
  client.setRequestHandler('elicitation/create', ({ params }) => desk.answer(params))
  await client.connect(new ModernTransport(url, { requestInit: desk.init }))
  return hostOf(client, desk.asked)
}

/** What both have in common of a person: the token, and the answers. */
const frontOf = (person: Person) => {
  const asked: string[] = []
  return {
    asked,
    init: { headers: { Authorization: `Bearer ${person.token}` } },
    answer: async (question: Question) => {
      asked.push(question.mode ?? 'form')
      if (!('url' in question)) return { action: 'accept' as const, content: {} }
      const page = await consent(question.url, person)
      return { action: page.ok ? ('accept' as const) : ('cancel' as const) }
    },
  }
}

const hostOf = (client: Tools, asked: string[]): Host => ({
  listed: async () => (await client.listTools()).tools.map(({ name }) => name),
  call: async (name, args = {}) => {
    const before = asked.length
    const result = await client.callTool({ name, arguments: args })
    return { text: textOf(result), isError: 'isError' in result && result.isError === true, asked: asked.slice(before) }
  },
  [Symbol.asyncDispose]: () => client.close(),
})

/** Opens the link of a sign-in, shows who is there, signs in, and comes back: the page that is seen in the end. */
export const consent = async (link: string, { token, signIn }: Person): Promise<Response> => {
  const page = await fetch(link)
  const cookie = page.headers.getSetCookie()[0]?.split(';')[0] ?? ''
  const mark = /name="mark" value="([^"]*)"/.exec(await page.text())?.[1] ?? ''
  const body = new URLSearchParams({ mark, proof: token })
  const left = await fetch(link, { method: 'POST', redirect: 'manual', headers: { cookie, origin: new URL(link).origin }, body })
  const location = left.headers.get('location')
  return location === null ? left : fetch(await signIn(new URL(location)), { headers: { cookie } })
}
