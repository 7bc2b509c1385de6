/**
 * Parses JSON that Trunkline itself has written: its state files, sealed tokens, messages between its processes, responses of its
 * admin API. Text from anyone else goes through `json-object.ts` or a schema.
 *
 * Cast: the type is that of the writer; it is not checked.
 */
// oxlint-disable-next-line typescript/no-unnecessary-type-parameters -- the type is what the caller wrote
export const parseOwnJson = <T>(text: string): T => JSON.parse(text) as T
