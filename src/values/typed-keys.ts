/**
 * `Object.keys` and `Object.entries` that return the declared keys in place of `string`. Only for tables of Trunkline itself: any other
 * object may have more members than its type declares.
 */

/** The own keys of a table. Cast: it has no others. */
export const keysOf = <T extends object>(table: T): (keyof T & string)[] => Object.keys(table) as (keyof T & string)[]

/** The own members of a table. Cast: it has no others. */
export const entriesOf = <T extends object>(table: T): [keyof T & string, T[keyof T & string]][] =>
  Object.entries(table) as [keyof T & string, T[keyof T & string]][]
