/** The name of a replica in session ids, request states and the store. */

/** A replica: one process with its address. `instance` is unique for each start. */
export interface Home {
  readonly instance: string
  /** `replicas.url` */
  readonly url: string
}

export const formatHome = ({ instance, url }: Home): string => `${instance} ${url}`

/** Parses the text of `formatHome`; `undefined`: another text. */
export const homeOf = (text: string): Home | undefined => {
  const [instance = '', url, ...rest] = text.split(' ')
  return instance === '' || url === undefined || rest.length > 0 ? undefined : { instance, url }
}
