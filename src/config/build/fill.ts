import type { z } from 'zod'

/**
 * `base` with every member that `given` defines, renamed from the YAML key to the member of the code by the fields of the section's schema
 * (`fieldsOf`). Fields that name no member are ignored.
 */
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
