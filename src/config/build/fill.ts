/**
 * `base` with every member that `given` has, under the name the code uses for it: the table between YAML and code. The schema decides
 * that the types agree, the tables that no name is forgotten.
 */
export const fill = <O extends object, const N extends Readonly<Record<string, keyof O>>>(
  names: N,
  base: O,
  given: { readonly [K in keyof N]?: unknown } | undefined,
): O => {
  const said = Object.entries(names).filter(([name]) => given?.[name] !== undefined)
  return { ...base, ...Object.fromEntries(said.map(([name, member]) => [member, given?.[name]])) }
}
