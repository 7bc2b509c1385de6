/** Estimates the tokens of definitions: the bytes as listed, divided by 4 (DECISIONS 5). */
export const estimateTokens = (bytes: Uint8Array): number => Math.ceil(bytes.length / 4)

/** The estimate for several definitions: the sum of those of each, so that the parts of a total add up to it. */
export const estimateAll = (definitions: readonly Uint8Array[]): number =>
  definitions.reduce((sum, bytes) => sum + estimateTokens(bytes), 0)
