/** The names from one to the other, both among them, in the order of the list; the second alone where the first is not in it. */
export const namesBetween = (names: readonly string[], from: string, to: string): readonly string[] => {
  const [a, b] = [names.indexOf(from), names.indexOf(to)]
  if (b === -1) return []
  return a === -1 ? [to] : names.slice(Math.min(a, b), Math.max(a, b) + 1)
}
