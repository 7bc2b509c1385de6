/**
 * Shows invisible characters and characters that reverse the text direction as their codes. Applies to all texts of the page, so that no
 * screen has to do it. Changes nothing else: `model/text.ts` cuts and joins lines.
 */
import { Fragment, options } from 'preact'
import type { VNode } from 'preact'
import { markHidden } from '../../wire/protocol/hidden-characters.ts'

/** Attributes that are displayed or read by screen readers. */
const SHOWN = ['children', 'title', 'aria-label', 'placeholder', 'alt'] as const

/** Installs the marking for every element that is created afterwards. */
export const markHiddenTexts = (): void => {
  const before = options.vnode?.bind(options)
  options.vnode = (vnode) => {
    if (typeof vnode.type === 'string' || vnode.type === Fragment) markProps(vnode)
    before?.(vnode)
  }
}

const markProps = ({ props }: VNode): void => {
  // Cast: the members are read by name.
  const shown = props as Record<string, unknown>
  for (const name of SHOWN) if (shown[name] !== undefined) shown[name] = marked(shown[name])
}

const marked = (value: unknown): unknown => {
  if (typeof value === 'string') return markHidden(value)
  return Array.isArray(value) ? value.map(marked) : value
}
