/**
 * A caught value as an error. JavaScript can throw any value; one that is not an error becomes the message of a new error.
 * `code` is what Node's own functions set, such as `ENOENT`.
 */
export const asError = (caught: unknown): NodeJS.ErrnoException => (caught instanceof Error ? caught : new Error(String(caught)))
