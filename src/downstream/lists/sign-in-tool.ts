/** The lists of a server until a person has signed in: one tool, which asks for the sign-in (BRIDGING 6.4). */
import { createHash } from 'node:crypto'
import { perKind } from '../../catalog/inventory.ts'
import type { Freshness, Inventory } from '../../catalog/inventory.ts'
import { complete } from '../../rpc/call.ts'
import type { Outcome } from '../../rpc/call.ts'
import { Payload } from '../../wire/message/payload.ts'
import { LATEST_LEGACY } from '../../wire/protocol/revisions.ts'
import type { ServerOptions } from '../options.ts'
import { counted } from '../../values/counted.ts'

/** Original name of the tool. */
export const SIGN_IN_TOOL = 'sign_in'

export const signInInventory = ({ displayName }: ServerOptions): Inventory => {
  const tool = {
    name: SIGN_IN_TOOL,
    title: `Sign in to ${displayName}`,
    description: `${displayName} needs a sign-in before its tools can be used. Calling this tool asks the person to sign in.`,
    inputSchema: { type: 'object', properties: {} },
    annotations: { readOnlyHint: true },
  }
  const raw = Buffer.from(JSON.stringify(tool))
  return {
    revision: LATEST_LEGACY,
    capabilities: { tools: { listChanged: true } },
    instructions: undefined,
    lists: {
      tools: [{ original: SIGN_IN_TOOL, raw, paramHeaders: [], isSignIn: true }],
      resources: [],
      templates: [],
      prompts: [],
    },
    freshness: perKind<Freshness>(() => ({ receivedAtMs: 0, ttlMs: 0, scope: 'private' })),
    leftOut: [],
    findings: [],
    warnings: [],
    digest: createHash('sha256').update(raw).digest('base64url'),
  }
}

export const signedIn = ({ displayName }: ServerOptions, inventory: Inventory | undefined): Outcome => {
  const count = inventory?.lists.tools.length ?? 0
  const text = `Signed in to ${displayName}. Listed now: ${counted(count, 'tool')}.`
  return complete(Payload.of({ content: [{ type: 'text', text }] }))
}
