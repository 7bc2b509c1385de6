/** Replaces texts and hints of a tool's definition by those of the configuration; all other bytes stay. */
import { join, Payload } from '../../wire/message/payload.ts'
import type { Hints } from '../hints.ts'

/** Absent members stay as the server has them. */
export interface ToolOverride {
  readonly title?: string | undefined
  readonly description?: string | undefined
  readonly annotations?: Hints | undefined
}

export const overridden = (raw: Buffer, { title, description, annotations = {} }: ToolOverride): Buffer => {
  const definition = Payload.at(raw)
  if (title !== undefined) {
    definition.set('title', JSON.stringify(title))
    // Older hosts read the title there.
    if (definition.object('annotations')?.has('title') === true) definition.setIn('annotations', 'title', JSON.stringify(title))
  }
  if (description !== undefined) definition.set('description', JSON.stringify(description))
  for (const [hint, value] of Object.entries(annotations)) definition.setIn('annotations', hint, String(value))
  return join(definition.parts())
}
