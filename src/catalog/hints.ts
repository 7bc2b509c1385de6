/** What is believed of a tool, where a policy asks: the operator always, the server's own annotations only if it is trusted. */
import type { Exposed } from './catalog.ts'
import { hintsOf, holds } from './curated-filter.ts'
import type { HintName, Hints } from './curation.ts'

/** Whether the hint holds of this tool; `told`: what its toolset says of it. */
export const isBelieved = (hint: HintName, { server, entry }: Exposed, told: Hints = {}): boolean => {
  // The definition of a trusted server already says what is said under its `tools`.
  const said = server.trusted === true ? hintsOf(entry.raw) : server.curation?.edits.get(entry.original)?.annotations?.hints
  return holds(hint, { ...said, ...told })
}
