/** Estimates the tokens of definitions: the bytes as listed, divided by 4 (DECISIONS 5). */
export const estimateTokens = (bytes: Uint8Array): number => Math.ceil(bytes.length / 4)
