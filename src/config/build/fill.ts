/**
 * `base` with every member that `given` defines, renamed by the table `names`: the YAML key to the member of the code. The schema
 * checks the types, the tables that no name is missing.
 */
export const fill = <O extends object, const N extends Readonly<Record<string, keyof O>>>(
  names: N,
  base: O,
  given: { readonly [K in keyof N]?: unknown } | undefined,
): O => {
  const defined = Object.entries(names).filter(([name]) => given?.[name] !== undefined)
  return { ...base, ...Object.fromEntries(defined.map(([name, member]) => [member, given?.[name]])) }
}
