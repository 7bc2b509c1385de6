/**
 * The own member `key` of a table; `undefined`: there is none. The keys come from outside, and may be names that every object inherits, such
 * as `constructor`.
 */
export const ownValue = <T>(table: Readonly<Record<string, T>>, key: string): T | undefined =>
  Object.hasOwn(table, key) ? table[key] : undefined
