/** Outcome of a call: a word and a sign, so that it does not depend on colour alone. */
import type { JSX } from 'preact'
import type { CallRow } from '../../observe/capture/captured.ts'

const WORDS: Readonly<Record<string, string>> = {
  ok: 'ok',
  streamed: 'ok',
  tool_error: 'tool error',
  error: 'error',
  failed: 'failed',
  refused: 'refused',
  cancelled: 'cancelled',
  input_required: 'asks',
  task: 'task',
}

export const isTrouble = ({ outcome }: Pick<CallRow, 'outcome'>): boolean =>
  outcome === 'tool_error' || outcome === 'error' || outcome === 'failed' || outcome === 'refused'

export const Outcome = ({ row }: { readonly row: Pick<CallRow, 'outcome' | 'state' | 'error'> }): JSX.Element => {
  const tone = row.state === 'open' ? 'open' : isTrouble(row) ? 'trouble' : row.outcome === 'cancelled' ? 'notice' : 'plain'
  const word = row.state === 'open' ? 'open' : (WORDS[row.outcome ?? ''] ?? row.outcome ?? '')
  return (
    <span class={`outcome outcome-${tone}`} title={row.error?.kind ?? undefined}>
      <span class="outcome-sign" aria-hidden="true" />
      {word}
    </span>
  )
}
