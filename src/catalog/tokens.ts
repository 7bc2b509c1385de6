/** What definitions cost a model. */

/** An estimate: the bytes of definitions as they are listed, divided by 4 (DECISIONS 5). */
export const estimateTokens = (bytes: Uint8Array): number => Math.ceil(bytes.length / 4)
