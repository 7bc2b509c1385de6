/**
 * `Object.keys` and `Object.entries` with the keys of the type. For objects that are built here and hold nothing but their declared
 * members: TypeScript says `string`, because a value of the type may have others.
 */

/** The own keys of a table. Cast: it has no others. */
export const keysOf = <T extends object>(table: T): (keyof T & string)[] => Object.keys(table) as (keyof T & string)[]

/** The own members of a table. Cast: it has no others. */
export const entriesOf = <T extends object>(table: T): [keyof T & string, T[keyof T & string]][] =>
  Object.entries(table) as [keyof T & string, T[keyof T & string]][]
