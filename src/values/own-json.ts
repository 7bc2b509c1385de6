/**
 * Parses JSON that Trunkline itself has written: state files, sealed tokens, messages between its processes, responses of its admin
 * API. Any other text is read with `json-object.ts` or a schema.
 *
 * Cast: the writer used the same type; it is not checked here.
 */
// oxlint-disable-next-line typescript/no-unnecessary-type-parameters -- the type is what the caller wrote
export const parseOwnJson = <T>(text: string): T => JSON.parse(text) as T
