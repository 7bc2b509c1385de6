/** Hints about tools for policies: the annotations of trusted servers and of the operator, else the defaults of the specification. */
import { keysOf } from '../values/typed-keys.ts'
import { Payload } from '../wire/message/payload.ts'

export type HintName = 'readOnlyHint' | 'destructiveHint' | 'idempotentHint' | 'openWorldHint'
export type Hints = Readonly<Partial<Record<HintName, boolean | undefined>>>

/** A tool, whether its server is trusted, and the operator's hints for it (`told`). */
interface HintedTool {
  readonly server: { readonly trusted: boolean | undefined }
  readonly entry: { readonly raw: Buffer; readonly told?: Hints | undefined }
}

/** Defaults of absent annotations ([2026-07-28 schema, ToolAnnotations]). */
const DEFAULTS: Readonly<Record<HintName, boolean>> = {
  readOnlyHint: false,
  destructiveHint: true,
  idempotentHint: false,
  openWorldHint: true,
}
const HINTS = keysOf(DEFAULTS)

/** Whether the hint applies to this tool. `told`: hints of the operator for the caller's toolset. Hints of the operator are always trusted. */
export const holds = (hint: HintName, { server, entry }: HintedTool, told: Hints = {}): boolean =>
  believed(hint, { ...(server.trusted === true && hintsOf(entry.raw)), ...entry.told, ...told })

/** Whether the hint applies to a tool with these trusted annotations. */
export const believed = (hint: HintName, hints: Hints): boolean => {
  // A tool that only reads is idempotent and not destructive.
  if (hints.readOnlyHint === true && hint === 'destructiveHint') return false
  if (hints.readOnlyHint === true && hint === 'idempotentHint') return true
  return hints[hint] ?? DEFAULTS[hint]
}

/** The hints in the annotations of a definition. */
export const hintsOf = (definition: Buffer): Hints => {
  // A key may be written with escapes (B269).
  const mayHave = definition.includes('"annotations"') || definition.includes('\\u')
  const annotations = mayHave ? Payload.at(definition).object('annotations') : undefined
  if (annotations === undefined) return {}
  return Object.fromEntries(
    HINTS.flatMap((hint) => {
      const value = annotations.raw(hint)?.toString()
      return value === 'true' || value === 'false' ? [[hint, value === 'true']] : []
    }),
  )
}
