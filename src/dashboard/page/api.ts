/** Requests to the admin listener, with the token of the session. A refusal is thrown as `ApiError`. */
import { signal } from '@preact/signals'
import { asError } from '../../values/as-error.ts'
import { attempt } from '../../values/attempt.ts'

/** The answer of `GET /api/session`. */
export interface Session {
  readonly principal: string
  readonly role: 'operator' | 'user'
  readonly write: boolean
  readonly bodies: 'off' | 'errors' | 'all'
  readonly version: string
  /** The values of `-c`. */
  readonly named: readonly string[]
  /** Faults are injected on purpose. */
  readonly faults: boolean
}

export class ApiError extends Error {
  override readonly name = 'ApiError'
  readonly status: number
  readonly code: string
  /** Position in the filter. */
  readonly at: number | undefined

  constructor(status: number, code: string, message: string, at?: number) {
    super(message)
    this.status = status
    this.code = code
    this.at = at
  }
}

/** `undefined`: the page is not signed in. */
export const session = signal<Session | undefined>(undefined)
/** The reason why the page is not signed in; empty if there is none to show. */
export const sessionProblem = signal('')

/**
 * The token survives only a reload of this page: session storage belongs to one tab and one origin, including the port.
 * A browser that stores nothing throws: the token ends with the page. Decision 0061.
 */
const STORED = 'trunkline-token'
let token = ''

export const ask = async <T>(method: string, path: string, body?: string, signal?: AbortSignal): Promise<T> =>
  // Cast: the answer of the gateway.
  JSON.parse(await askText(method, path, body, signal)) as T

/** As `ask`, with the unchanged text: results of tools are shown byte for byte. */
export const askText = async (method: string, path: string, body?: string, signal?: AbortSignal): Promise<string> =>
  (await send(method, path, body, signal)).text()

export const send = async (method: string, path: string, body?: string, signal?: AbortSignal): Promise<Response> => {
  let response: Response
  try {
    response = await fetch(`/api${path}`, {
      method,
      headers: { Authorization: `Bearer ${token}`, ...(body !== undefined && { 'Content-Type': 'application/json' }) },
      ...(body !== undefined && { body }),
      ...(signal !== undefined && { signal }),
      cache: 'no-store',
    })
  } catch (error) {
    if (signal?.aborted === true) throw error
    throw new ApiError(0, 'unreachable', 'Trunkline does not answer: it has ended, or restarts')
  }
  if (response.ok) return response
  const failure = await failureOf(response)
  if (failure.code === 'unauthorized' && session.peek() !== undefined)
    end('The session has ended: it was silent for twelve hours, or Trunkline was restarted.')
  throw failure
}

const failureOf = async (response: Response): Promise<ApiError> => {
  try {
    // Cast: the answer of the gateway.
    const { error } = JSON.parse(await response.text()) as { error: { code: string; message: string; at?: number } }
    return new ApiError(response.status, error.code, error.message, error.at)
  } catch {
    return new ApiError(response.status, 'unknown', `Trunkline answered ${response.status}`)
  }
}

/** Signs in with the key of the link, with the stored token, or not at all. */
export const startSession = async (): Promise<void> => {
  const key = /^#k=([\w-]+)$/.exec(location.hash)?.[1]
  if (key !== undefined) history.replaceState(null, '', `${location.pathname}${location.search}`)
  token = attempt(() => sessionStorage.getItem(STORED)) ?? ''
  if (key === undefined) return token === '' ? undefined : signInWith(token).catch(endWithError)
  try {
    const opened = await ask<Session & { readonly token: string }>('POST', '/session', JSON.stringify({ key }))
    keep(opened.token)
    session.value = opened
  } catch (error) {
    // The link was used twice: the first use stored a token.
    if (token === '') return endWithError(error)
    await signInWith(token).catch(() => endWithError(error))
  }
}

/** Rejects with `ApiError` if the token is invalid. */
export const signInWith = async (given: string): Promise<void> => {
  // A header cannot carry other characters: the request would fail as if nothing answered.
  if (!/^[\x21-\x7e]+$/.test(given))
    throw new ApiError(401, 'unauthorized', 'This is no token: it contains a space or a letter that no token has. Copy it again.')
  token = given
  const opened = await ask<Session>('GET', '/session')
  keep(given)
  sessionProblem.value = ''
  session.value = opened
}

export const signOut = async (): Promise<void> => {
  await send('DELETE', '/session').catch(() => undefined)
  end('')
}

const keep = (given: string): void => {
  token = given
  attempt(() => sessionStorage.setItem(STORED, given))
}

const end = (problem: string): void => {
  token = ''
  attempt(() => sessionStorage.removeItem(STORED))
  sessionProblem.value = problem
  session.value = undefined
}

const endWithError = (error: unknown): void => {
  const isOld = error instanceof ApiError && error.code === 'unauthorized'
  end(isOld ? 'The session has ended.' : asError(error).message)
}
