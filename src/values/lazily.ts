/** A constant that is made when it is first asked for, so that programs that do not need it start without. `make`: pure. */
export const lazily = <T>(make: () => T): (() => T) => {
  let made: { readonly value: T } | undefined
  return () => (made ??= { value: make() }).value
}
