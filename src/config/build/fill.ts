import type { z } from 'zod'

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

/** The same, renamed by the fields of the section's schema (`fieldsOf`). Fields that name no member are ignored. */
export const fillFrom = <O extends object>(
  { shape }: { readonly shape: Readonly<Record<string, z.ZodType>> },
  base: O,
  given: Readonly<Record<string, unknown>> | undefined,
): O => {
  const defined = Object.entries(given ?? {}).flatMap(([name, value]) => {
    const member = shape[name]?.meta()?.['member']
    return typeof member === 'string' && value !== undefined ? [[member, value]] : []
  })
  return { ...base, ...Object.fromEntries(defined) }
}
