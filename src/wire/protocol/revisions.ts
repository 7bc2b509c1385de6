/** The five protocol revisions, in order, and the two eras they fall into ([2026-07-28 basic/versioning]). */

export const LEGACY_REVISIONS = ['2024-11-05', '2025-03-26', '2025-06-18', '2025-11-25'] as const
export const MODERN_REVISIONS = ['2026-07-28'] as const

export type LegacyRevision = (typeof LEGACY_REVISIONS)[number]
export type ModernRevision = (typeof MODERN_REVISIONS)[number]
export type Revision = LegacyRevision | ModernRevision
export type Era = 'legacy' | 'modern'

export const OLDEST_LEGACY: LegacyRevision = '2024-11-05'
export const LATEST_LEGACY: LegacyRevision = '2025-11-25'
export const MODERN: ModernRevision = '2026-07-28'

export const isLegacyRevision = (text: string): text is LegacyRevision => LEGACY_REVISIONS.some((revision) => revision === text)
export const isModernRevision = (text: string): text is ModernRevision => MODERN_REVISIONS.some((revision) => revision === text)
export const isRevision = (text: string): text is Revision => isLegacyRevision(text) || isModernRevision(text)

/** The revisions that hosts may use, from `min` to `max` inclusive (`listen.revisions`). */
export interface RevisionRange {
  readonly min: string
  readonly max: string
}

export const isWithin = (revision: string, { min, max }: RevisionRange): boolean => revision >= min && revision <= max

export const revisionsWithin = (range: RevisionRange): Revision[] =>
  [...LEGACY_REVISIONS, ...MODERN_REVISIONS].filter((revision) => isWithin(revision, range))

/** The legacy revision that is offered to a host that requests an unknown one; `undefined`: the range has no legacy revision. */
export const latestLegacyWithin = (range: RevisionRange): LegacyRevision | undefined =>
  LEGACY_REVISIONS.findLast((revision) => isWithin(revision, range))

/** Revisions are dates, which compare as text. */
export const isAtLeast = (revision: Revision, minimum: Revision): boolean => revision >= minimum
