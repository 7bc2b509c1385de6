/** `--as HOST`: the tools under the names that this host gives them, and its known limits that they exceed. */
import type { Control } from '../../admin/control.ts'
import { OUR_NAME } from '../../catalog/lint/host-lint.ts'
import type { HostFinding } from '../../catalog/lint/host-lint.ts'
import { HOST_LIMITS } from '../../catalog/lint/host-limits.ts'
import { suggest } from '../../config/syntax/nearest-key.ts'
import { CommandError, EXIT } from '../terminal/io.ts'

/** The view of a host of one toolset. */
export interface AsHost {
  readonly label: string
  /** The name that its model gets for an exposed name, before the host shortens it. */
  readonly nameOf: (exposed: string) => string
  /** Findings about one tool, by its exposed name; for an empty name those about all tools. */
  readonly findings: (exposed: string) => readonly HostFinding[]
}

/** `toolset`: `undefined`: what hosts get that name none. */
export const asHost = async (control: Control, word: string, toolset: string | undefined): Promise<AsHost> => {
  // Cast: `knownLimits` returns keys of `HOST_LIMITS` only.
  const limits = HOST_LIMITS[knownLimits(word)]!
  const { findings } = await control.lint([word])
  const own = findings.filter((finding) => finding.toolset === (toolset ?? ''))
  return {
    label: limits.label,
    nameOf: (exposed) => `${limits.namePrefix(OUR_NAME)}${exposed}`,
    findings: (exposed) => own.filter(({ tool }) => tool === exposed),
  }
}

/** The key of a host whose limits are known; throws a usage error with a suggestion. */
export const knownLimits = (word: string): string => {
  const known = Object.keys(HOST_LIMITS)
  if (known.includes(word)) return word
  throw new CommandError(EXIT.usage, `no host "${word}" is known; ${suggest(word, known)}`)
}

export const findingText = ({ message, remedy }: HostFinding): string => `${message} → ${remedy}`
