/**
 * What a person would not see in a text, or what would turn it around, is shown as its code wherever a text is shown: all texts of the
 * page pass here, so that no screen can forget it. Shapes nothing else: `model/text.ts` cuts and joins lines.
 */
import { Fragment, options } from 'preact'
import type { VNode } from 'preact'
import { markHidden } from '../../wire/protocol/hidden-characters.ts'

/** Attributes that people see or hear. */
const SHOWN = ['children', 'title', 'aria-label', 'placeholder', 'alt'] as const

/** From here on, for every element that is made. */
export const markHiddenTexts = (): void => {
  const before = options.vnode?.bind(options)
  options.vnode = (vnode) => {
    if (typeof vnode.type === 'string' || vnode.type === Fragment) markProps(vnode)
    before?.(vnode)
  }
}

const markProps = ({ props }: VNode): void => {
  // Cast: the members are looked at by name.
  const shown = props as Record<string, unknown>
  for (const name of SHOWN) if (shown[name] !== undefined) shown[name] = marked(shown[name])
}

const marked = (value: unknown): unknown => {
  if (typeof value === 'string') return markHidden(value)
  return Array.isArray(value) ? value.map(marked) : value
}
