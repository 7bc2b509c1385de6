/** How each host is connected by hand: what stands in its file, for a page that people read who have no command line of ours. */
import { entryFor, HOSTS } from './hosts.ts'
import type { Around, HostRow } from './hosts.ts'
import { editedText } from './sample.ts'

/** One host. */
export interface Guide {
  readonly label: string
  /** Name of its file; where the file lies differs between systems. */
  readonly file: string
  readonly text: string
  /** When the host notices. */
  readonly afterwards: string
  /** Makes the host enter it by itself. */
  readonly link?: string
}

/** A person whose home is `~`, on whatever system. */
const ANYWHERE: Around = { env: {}, home: '~', cwd: '.', platform: 'linux' }

/** Hosts that take a URL in their file; `tokenVariable`: the variable of their environment that holds a token. */
export const connectGuides = (url: string, tokenVariable: string | undefined): readonly Guide[] =>
  Object.values(HOSTS).flatMap((host) => guideTo(host, url, tokenVariable) ?? [])

const guideTo = (host: HostRow, url: string, tokenVariable: string | undefined): Guide | undefined => {
  const place = host.places(ANYWHERE).find(({ scope, isOld }) => scope === 'user' && isOld !== true)
  const entry = entryFor(host, { kind: 'http', url, tokenVariable })
  if (place === undefined || entry === undefined) return undefined
  const { label, afterwards } = host
  const link = host.link?.('trunkline', entry)
  const file = place.path.replace(/^~\/\.config\/.*\//, '')
  return { label, file, text: editedText(place, entry), afterwards, ...(link !== undefined && { link }) }
}
