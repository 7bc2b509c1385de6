/**
 * Returns a caught value as an error. Any value that is not an error becomes the message of a new one. Node's own functions set
 * `code`, such as `ENOENT`.
 */
export const asError = (caught: unknown): NodeJS.ErrnoException => (caught instanceof Error ? caught : new Error(String(caught)))
