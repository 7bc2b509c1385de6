/** What is believed of a tool, where a policy asks: of a server that is trusted its annotations, else what the specification assumes. */
import { keysOf } from '../values/typed-keys.ts'
import { Payload } from '../wire/message/payload.ts'

export type HintName = 'readOnlyHint' | 'destructiveHint' | 'idempotentHint' | 'openWorldHint'
export type Hints = Readonly<Partial<Record<HintName, boolean | undefined>>>

/** A tool of which a hint is asked: whether its server is trusted, its definition, and what the operator says of it. */
interface HintedTool {
  readonly server: { readonly trusted: boolean | undefined }
  readonly entry: { readonly raw: Buffer; readonly told?: Hints | undefined }
}

/** What [2026-07-28 schema, ToolAnnotations] says of a tool that says nothing. */
const ASSUMED: Readonly<Record<HintName, boolean>> = {
  readOnlyHint: false,
  destructiveHint: true,
  idempotentHint: false,
  openWorldHint: true,
}
const HINTS = keysOf(ASSUMED)

/**
 * Whether the hint holds of this tool; `told`: what the operator says of it where the caller looks, beside what he says of it at its
 * server. He is always believed.
 */
export const holds = (hint: HintName, { server, entry }: HintedTool, told: Hints = {}): boolean =>
  believed(hint, { ...(server.trusted === true && hintsOf(entry.raw)), ...entry.told, ...told })

/** Whether the hint holds of a tool of which this is known, and believed. */
export const believed = (hint: HintName, hints: Hints): boolean => {
  // A tool that only reads destroys nothing, and changes nothing the second time.
  if (hints.readOnlyHint === true && hint === 'destructiveHint') return false
  if (hints.readOnlyHint === true && hint === 'idempotentHint') return true
  return hints[hint] ?? ASSUMED[hint]
}

/** What a definition says of itself, as far as it does. */
export const hintsOf = (definition: Buffer): Hints => {
  const said = definition.includes('"annotations"') ? Payload.at(definition).object('annotations') : undefined
  if (said === undefined) return {}
  return Object.fromEntries(
    HINTS.flatMap((hint) => {
      const value = said.raw(hint)?.toString()
      return value === 'true' || value === 'false' ? [[hint, value === 'true']] : []
    }),
  )
}
