/**
 * The instructions of all servers as one text: the description of the toolset, then one section per server in configuration order. The
 * heading of a section is the operator's name for the server; its text comes from the server and is untrusted (B045, B261).
 */
import { cleanLabel } from '../../wire/protocol/label.ts'
import type { View } from './view.ts'
import { firstBytes } from '../../values/cut-text.ts'

export interface InstructionLimits {
  /** Bytes of one server's text. */
  readonly instructionsMaxBytes: number
  /** Bytes of all sections together. */
  readonly instructionsTotalBytes: number
}

const CUT = ' […]'

/** The joined text; `undefined`: neither the toolset nor any server of the view has one. `isShown`: whether the caller sees this server. */
export const joinInstructions = (
  view: View,
  limits: InstructionLimits,
  isShown: (serverKey: string) => boolean = () => true,
): string | undefined => {
  const { naming, sources } = view.catalog
  const description = view.toolset?.description
  const sections = description === undefined ? [] : [description]
  let left = limits.instructionsTotalBytes
  for (const { server, inventory } of view.sources) {
    const text = server.instructions ? inventory?.instructions?.trim() : undefined
    if (text === undefined || text === '' || !isShown(server.key)) continue
    const note = naming.prefix === 'always' ? `Names of this server's tools and prompts start with \`${server.prefix}__\`.\n` : ''
    const heading = sources.length === 1 && note === '' ? '' : `## ${cleanLabel(server.displayName)}\n${note}`
    const room = left - Buffer.byteLength(heading) - Buffer.byteLength(CUT)
    if (room <= 0) break
    const section = `${heading}${cut(text, Math.min(room, limits.instructionsMaxBytes))}`
    sections.push(section)
    left -= Buffer.byteLength(section) + 2
  }
  return sections.length === 0 ? undefined : sections.join('\n\n')
}

/** The text if it has at most `maxBytes` bytes, else its beginning followed by `CUT`. */
const cut = (text: string, maxBytes: number): string => {
  const kept = firstBytes(text, maxBytes)
  return kept === text ? text : `${kept}${CUT}`
}
