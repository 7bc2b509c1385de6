/** A number with its noun: `1 caller`, `2 callers`. */
export const counted = (count: number, noun: string): string => `${count} ${noun}${count === 1 ? '' : 's'}`
