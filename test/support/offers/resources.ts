/** The resources and resource templates every test server offers. */

/** One row, with either `text` or `blob`. */
export interface ResourceOffer {
  uri: string
  name: string
  description: string
  mimeType: string
  text?: string
  /** Base64. */
  blob?: string
}

/** One row; `read` gets the variables of the URI and returns a text. */
export interface TemplateOffer {
  uriTemplate: string
  name: string
  description: string
  mimeType: string
  read: (variables: Record<string, string>) => string
}
/** A 1x1 PNG, base64. */
export const PNG = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJRU5ErkJggg=='
/** In the order in which servers list them. */
export const resourceOffers: ResourceOffer[] = [
  {
    uri: 'test://static-text',
    name: 'static-text',
    description: 'A text',
    mimeType: 'text/plain',
    text: 'This is the content of the static text resource.',
  },
  { uri: 'test://static-binary', name: 'static-binary', description: 'A picture', mimeType: 'image/png', blob: PNG },
  {
    uri: 'test://watched-resource',
    name: 'watched-resource',
    description: 'A text one can subscribe to',
    mimeType: 'text/plain',
    text: 'Watched resource content',
  },
]

/** In the order in which servers list them. */
export const templateOffers: TemplateOffer[] = [
  {
    uriTemplate: 'test://template/{id}/data',
    name: 'template',
    description: 'Data for an id',
    mimeType: 'application/json',
    read: ({ id }) => JSON.stringify({ id, templateTest: true, data: `Data for ID: ${id}` }),
  },
  {
    uriTemplate: 'test://note/{topic}',
    name: 'note',
    description: 'A note on a topic',
    mimeType: 'text/plain',
    read: ({ topic }) => `A note on ${topic}`,
  },
  {
    uriTemplate: 'test://pair/{left}/{right}',
    name: 'pair',
    description: 'Two words',
    mimeType: 'text/plain',
    read: ({ left, right }) => `${left} and ${right}`,
  },
]

/** As it stands in the list. */
export const listedResource = ({ uri, name, description, mimeType }: ResourceOffer) => ({ uri, name, description, mimeType })
export const listedTemplate = ({ uriTemplate, name, description, mimeType }: TemplateOffer) => ({
  uriTemplate,
  name,
  description,
  mimeType,
})
