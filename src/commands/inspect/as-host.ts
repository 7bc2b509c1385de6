/** `--as HOST`: the tools under the names that this host gives them, and what it would not take as it is. */
import type { Control } from '../../admin/control.ts'
import { OUR_NAME } from '../../catalog/lint/host-lint.ts'
import type { HostFinding } from '../../catalog/lint/host-lint.ts'
import { HOST_LIMITS } from '../../catalog/lint/host-limits.ts'
import { nearestKey } from '../../config/syntax/nearest-key.ts'
import { CommandError, EXIT } from '../terminal/io.ts'

/** A host as it looks at one toolset. */
export interface AsHost {
  readonly label: string
  /** What its model sees of an exposed name, before the host shortens it. */
  readonly nameOf: (exposed: string) => string
  /** About one tool, by its exposed name; about all of them with an empty one. */
  readonly findings: (exposed: string) => readonly HostFinding[]
}

/** `toolset`: what is looked at; `undefined`: what hosts get that name none. */
export const asHost = async (control: Control, word: string, toolset: string | undefined): Promise<AsHost> => {
  // Cast: `knownLimits` takes no other word.
  const limits = HOST_LIMITS[knownLimits(word)]!
  const { findings } = await control.lint([word])
  const own = findings.filter((finding) => finding.toolset === (toolset ?? ''))
  return {
    label: limits.label,
    nameOf: (exposed) => `${limits.namePrefix(OUR_NAME)}${exposed}`,
    findings: (exposed) => own.filter(({ tool }) => tool === exposed),
  }
}

/** The word of a host whose limits are known, or a usage error that names the nearest. */
export const knownLimits = (word: string): string => {
  const known = Object.keys(HOST_LIMITS)
  if (known.includes(word)) return word
  const near = nearestKey(word, known)
  throw new CommandError(
    EXIT.usage,
    `no host "${word}" is known; ${near === undefined ? `known: ${known.join(', ')}` : `did you mean "${near}"?`}`,
  )
}

export const findingText = ({ message, remedy }: HostFinding): string => `${message} → ${remedy}`
