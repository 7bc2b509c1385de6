/** A tool's definition with the words of the configuration in place of its own; every other byte stays. */
import { join, Payload } from '../../wire/message/payload.ts'
import type { Hints } from '../hints.ts'

/** What takes the place of the server's own words. */
export interface ToolOverride {
  readonly title?: string | undefined
  readonly description?: string | undefined
  readonly annotations?: Hints | undefined
}

export const overridden = (raw: Buffer, { title, description, annotations = {} }: ToolOverride): Buffer => {
  const definition = Payload.at(raw)
  if (title !== undefined) {
    definition.set('title', JSON.stringify(title))
    // Where older hosts read it.
    if (definition.object('annotations')?.has('title') === true) definition.setIn('annotations', 'title', JSON.stringify(title))
  }
  if (description !== undefined) definition.set('description', JSON.stringify(description))
  for (const [hint, value] of Object.entries(annotations)) definition.setIn('annotations', hint, String(value))
  return join(definition.parts())
}
