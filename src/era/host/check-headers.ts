/** Checks headers of a modern host's request against its body: `MCP-Protocol-Version`, `Mcp-Method`, `Mcp-Name` (BRIDGING 5.1 rows 10, 12). */
import { Refusal } from '../../rpc/call.ts'
import { decodeHeaderValue } from '../../wire/headers/header-value.ts'
import type { Envelope } from '../../wire/message/envelope.ts'
import { META } from '../../wire/protocol/meta.ts'
import { METHODS } from '../../wire/protocol/methods.ts'
import { isModernRevision } from '../../wire/protocol/revisions.ts'
import { unsupportedVersion } from './modern-host.ts'

/** Row 10: throws `Refusal` if the header differs from the version in the body (B190). */
export const checkVersionHeader = (message: Envelope, sent: string | undefined): void => {
  if (sent === undefined) throw mismatch('the MCP-Protocol-Version header is missing')
  const version = message.params?.object('_meta')?.text(META.version)
  if (version !== undefined && version !== sent)
    throw mismatch(`the MCP-Protocol-Version header says "${sent}", the body "${version}"`)
  if (!isModernRevision(sent)) throw unsupportedVersion(sent)
}

/** Row 12: throws `Refusal` if `Mcp-Method` or `Mcp-Name` differs from the body (B190, B191). */
export const checkMirrors = (message: Envelope, header: (name: string) => string | undefined): void => {
  const method = header('mcp-method')
  if (method === undefined) throw mismatch('the Mcp-Method header is missing')
  if (method !== message.method) throw mismatch(`the Mcp-Method header says "${method}", the body "${message.method}"`)
  const row = METHODS[message.method]
  if (row?.hasNameHeader !== true || row.field === undefined) return
  const sent = header('mcp-name')
  if (sent === undefined) throw mismatch('the Mcp-Name header is missing')
  const name = decodeHeaderValue(sent)
  if (name === undefined) throw mismatch('the Mcp-Name header cannot be decoded')
  if (name !== message.params?.text(row.field)) throw mismatch(`the Mcp-Name header says "${name}", the body differs`)
}

export const mismatch = (what: string): Refusal => new Refusal(-32020, `Header mismatch: ${what}`, { status: 400 })
