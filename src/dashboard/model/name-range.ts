/** The names from the first to the second, inclusive, in the order of the list; only the second if the first is not in the list. */
export const namesBetween = (names: readonly string[], from: string, to: string): readonly string[] => {
  const [a, b] = [names.indexOf(from), names.indexOf(to)]
  if (b === -1) return []
  return a === -1 ? [to] : names.slice(Math.min(a, b), Math.max(a, b) + 1)
}
