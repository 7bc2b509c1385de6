/** The name of a replica as ids, states and the store have it. */

/** One process, by the name it has from its start to its end. */
export interface Home {
  readonly instance: string
  /** `replicas.url` */
  readonly url: string
}

export const formatHome = ({ instance, url }: Home): string => `${instance} ${url}`

/** `undefined`: the text names no replica. */
export const homeOf = (text: string): Home | undefined => {
  const [instance, url, ...rest] = text.split(' ')
  return instance === undefined || instance === '' || url === undefined || rest.length > 0 ? undefined : { instance, url }
}
