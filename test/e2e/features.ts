/** What is tested in each cell of the interop matrix. */

/** The features of one cell of the matrix, as they appear in test names; the documentation is generated from these. */
export const features = [
  'connects',
  'lists every page of tools',
  'lists every page of resources',
  'lists every page of resource templates',
  'lists every page of prompts',
  'gets progress before the answer to its call',
  'cancels a call and the server stops it',
  'reads a resource',
  'reads a resource through its template',
  'gets a prompt with arguments',
  'completes an argument of a prompt and of a template',
  'hears that the list of tools changed',
  'hears that a resource it subscribed to changed',
] as const

/** One of `features`. */
export type Feature = (typeof features)[number]
