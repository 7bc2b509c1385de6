const decoder = new TextDecoder('utf-8', { fatal: true })

/** The text of a file, without a byte order mark; `undefined`: the bytes are not UTF-8. */
export const decodeUtf8 = (bytes: Uint8Array): string | undefined => {
  try {
    return decoder.decode(bytes)
  } catch {
    return undefined
  }
}
