/** Two definitions of one entry, side by side: the approved or previous one, and the current one. */
import type { JSX } from 'preact'
import { useMemo } from 'preact/hooks'
import { changesBetween } from '../model/two-hops.ts'
import { HopsView } from './hops-view.tsx'

export interface DefinitionsProps {
  readonly before: string | null | undefined
  readonly after: string | null | undefined
  readonly beforeTitle: string
  readonly afterTitle: string
}

export const Definitions = ({ before, after, beforeTitle, afterTitle }: DefinitionsProps): JSX.Element => {
  const changes = useMemo(() => (before && after ? changesBetween(before, after) : null), [before, after])
  const body = (text: string | null | undefined) => (text ? { text, bytes: new TextEncoder().encode(text).length } : undefined)
  return (
    <HopsView
      from={{ title: beforeTitle, body: body(before) }}
      to={{ title: afterTitle, body: body(after) }}
      changes={changes}
      hasRules={false}
    />
  )
}
