/** `trunkline token new`: makes a static token for a host, and its line for the configuration. Stores nothing. */
import { hashLine, makeToken } from '../../auth/inbound/static-tokens.ts'
import { isTokenId, parseExpiry } from '../../config/schema/auth-schema.ts'
import { CommandError, EXIT } from '../terminal/io.ts'
import type { Io } from '../terminal/io.ts'
import { printJson, printLines, remark } from '../terminal/print.ts'

export interface TokenOptions {
  /** Its name in the configuration; default: `host`. */
  readonly id?: string
  /** Toolsets that it may choose, the first by default; without them, all. */
  readonly toolset?: readonly string[]
  /** As in the configuration; default: never. */
  readonly expires?: string
}

/** `nowMs`: of the wall clock. */
export const newToken = async (
  io: Io,
  json: boolean,
  { id = 'host', toolset = [], expires }: TokenOptions,
  nowMs: number,
): Promise<number> => {
  if (!isTokenId(id))
    throw new CommandError(EXIT.usage, `--id takes letters, digits, . _ and - (at most 64), got ${JSON.stringify(id)}`)
  const expiresMs = expires === undefined ? Infinity : parseExpiry(expires)
  if (expiresMs === undefined)
    throw new CommandError(EXIT.usage, `--expires takes a date such as 2027-06-30, got ${JSON.stringify(expires)}`)
  if (expiresMs <= nowMs) throw new CommandError(EXIT.usage, `--expires ${expires} is in the past`)
  const token = makeToken()
  const entry = {
    id,
    hash: hashLine(token),
    ...(toolset.length > 0 && { toolsets: toolset }),
    ...(expires !== undefined && { expires }),
  }
  if (json) {
    await printJson(io, { token, entry })
    return EXIT.ok
  }
  remark(io, 'The token, which is shown only once, and its line for auth.tokens of the configuration:')
  await printLines(io, [token, `- ${flow(entry)}`])
  return EXIT.ok
}

/** One line of YAML: JSON with bare keys. */
const flow = (entry: object): string =>
  `{ ${Object.entries(entry)
    .map(([key, value]) => `${key}: ${JSON.stringify(value)}`)
    .join(', ')} }`
