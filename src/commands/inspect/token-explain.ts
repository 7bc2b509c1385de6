/**
 * `trunkline token explain`: reads a token from stdin and prints each check, the caller, its toolsets and scopes. The token is checked as
 * in a request, also at its authorization server, and is never printed.
 */
import type { Admitted } from '../../auth/identity.ts'
import { isForResource } from '../../auth/inbound/verify/claims.ts'
import { entranceScopes } from '../../auth/inbound/verify/inbound-options.ts'
import type { AuthOptions } from '../../auth/inbound/verify/inbound-options.ts'
import { IssuerUnreachable } from '../../auth/inbound/verify/issuer.ts'
import { passed } from '../../auth/inbound/verify/claims.ts'
import { SYSTEM_CLOCK } from '../../auth/inbound/verify/clock.ts'
import { sentenceOf } from '../../auth/token-refusal.ts'
import type { Check } from '../../auth/token-refusal.ts'
import type { Examination } from '../../auth/inbound/verify/resource-server.ts'
import { digestOf, StaticTokens } from '../../auth/inbound/static-tokens.ts'
import { SafeFetch } from '../../auth/fetch/safe-fetch.ts'
import { USER_AGENT } from '../../user-agent.ts'
import { CommandError, EXIT, load } from '../terminal/io.ts'
import type { Invocation, Io } from '../terminal/io.ts'
import { printResult } from '../terminal/print.ts'
import type { Line } from '../terminal/print.ts'
import { columns } from '../terminal/table.ts'

/** Longer than any accepted token, so that a longer one is refused with its reason. */
const MAX_INPUT_CHARACTERS = 128 * 1_024

export const explainToken = async (invocation: Invocation): Promise<number> => {
  const loaded = await load(invocation)
  const { configuration, io } = loaded
  const { auth } = configuration.host
  if (auth === undefined)
    throw new CommandError(EXIT.usage, 'no token is needed here: the configuration has no auth, so every caller is the same')
  const token = await readToken(io)
  io.redactor.learn([token])
  await using safeFetch = new SafeFetch({ userAgent: USER_AGENT })
  const examination = await examine(
    token,
    auth,
    safeFetch.through(() => configuration.proxies),
  )
  const { checks, admitted } = examination
  const scopes = missingScopes(admitted, auth)
  const isGood = admitted !== undefined && admitted.unmapped === undefined && scopes.length === 0
  const facts = factsOf(admitted, auth, scopes)
  const marks = columns(checks.map(({ cause, refusal }) => [refusal === undefined ? 'ok' : 'refused', cause]))
  await printResult(loaded, { ok: isGood, checks: checks.map(plainCheck), ...facts }, (paint) => [
    ...checks.map(({ found, refusal }, at): Line => [
      paint(marks[at] ?? '', refusal === undefined ? 'green' : 'red'),
      `  ${refusal === undefined ? found : sentenceOf(refusal)}`,
    ]),
    '',
    ...columns(Object.entries(facts).map(([name, value]) => [name.replaceAll('_', ' '), textOf(value)])),
  ])
  if (isGood) return EXIT.ok
  throw new CommandError(EXIT.authorization, 'the token is refused; see the checks above')
}

const examine = async (token: string, { tokens, oauth, map }: AuthOptions, fetch: SafeFetch['fetch']): Promise<Examination> => {
  const own = new StaticTokens(tokens).find(digestOf(token))
  if (own !== undefined && own.untilMs > Date.now())
    return { checks: [passed('form', 'a static token of auth.tokens')], admitted: own }
  if (own !== undefined || oauth === undefined)
    throw new CommandError(
      EXIT.authorization,
      own === undefined
        ? 'refused: no static token of auth.tokens, and auth.oauth is not configured'
        : 'refused: this static token has expired',
    )
  const { ResourceServer } = await import('../../auth/inbound/verify/resource-server.ts')
  try {
    return await new ResourceServer(oauth, map, fetch, SYSTEM_CLOCK).examine(token)
  } catch (error) {
    if (!(error instanceof IssuerUnreachable)) throw error
    throw new CommandError(
      EXIT.unreachable,
      `nothing can be said about the token: ${error.message}${error.remedy && `; ${error.remedy}`}`,
    )
  }
}

/** Scopes of every request that the token lacks. */
const missingScopes = (admitted: Admitted | undefined, { oauth }: AuthOptions): readonly string[] => {
  const granted = admitted?.identity.scopes
  return granted === undefined || oauth === undefined ? [] : entranceScopes(oauth).filter((scope) => !granted.includes(scope))
}

interface Facts {
  readonly principal?: string
  readonly toolsets?: readonly string[] | 'any'
  readonly scopes?: readonly string[] | 'not limited'
  readonly missing_scopes?: readonly string[]
  readonly valid_at?: readonly string[] | 'every endpoint'
  readonly valid_until?: string
}

const factsOf = (admitted: Admitted | undefined, { oauth }: AuthOptions, missing: readonly string[]): Facts => {
  if (admitted === undefined) return {}
  const { identity, audiences, untilMs } = admitted
  const opensAll = audiences === undefined || oauth === undefined || isForResource(audiences, new URL('/', oauth.audience).origin)
  return {
    principal: identity.principal,
    toolsets: identity.toolsets ?? 'any',
    scopes: identity.scopes ?? 'not limited',
    ...(missing.length > 0 && { missing_scopes: missing }),
    valid_at: opensAll ? 'every endpoint' : audiences,
    ...(Number.isFinite(untilMs) && { valid_until: new Date(untilMs).toISOString() }),
  }
}

const textOf = (value: unknown): string =>
  Array.isArray(value) ? (value.length === 0 ? 'none' : value.join(' ')) : String(value)

const plainCheck = ({ cause, found, refusal }: Check) =>
  refusal === undefined ? { check: cause, ok: true, found } : { check: cause, ok: false, ...refusal }

/** The first line that is not empty, without a scheme. Reading stops after it. */
const readToken = async ({ stdin, interrupted }: Pick<Io, 'stdin' | 'interrupted'>): Promise<string> => {
  let text = ''
  const stop = (): void => void stdin.destroy(new CommandError(EXIT.interrupted, 'interrupted'))
  if (interrupted.aborted) stop()
  else interrupted.addEventListener('abort', stop)
  for await (const chunk of stdin) {
    text += String(chunk)
    if (/\S\s*\n/.test(text)) break
    if (text.length > MAX_INPUT_CHARACTERS)
      throw new CommandError(EXIT.usage, `stdin has more than ${MAX_INPUT_CHARACTERS} characters, and no token`)
  }
  const token =
    text
      .trim()
      .split(/\r?\n/, 1)[0]
      ?.replace(/^(authorization:\s*)?bearer\s+/i, '')
      .trim() ?? ''
  if (token === '')
    throw new CommandError(EXIT.usage, 'expected a token on stdin, got nothing; such as: pbpaste | trunkline token explain')
  return token
}
