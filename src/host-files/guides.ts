/** How each host is connected by hand: the content of its file, for a web page. */
import { entryFor, HOSTS } from './hosts.ts'
import type { UserEnvironment, HostRow } from './hosts.ts'
import { editedText } from './sample.ts'

/** An environment with `~` as the home folder, independent of the system. */
const ANY_USER: UserEnvironment = { env: {}, home: '~', cwd: '.', platform: 'linux' }

/** Guides for the hosts that accept a URL in their file. `tokenVariable`: name of the environment variable with the token. */
export const connectGuides = (url: string, tokenVariable: string | undefined) =>
  Object.values(HOSTS).flatMap((host) => guideTo(host, url, tokenVariable) ?? [])

/** `file`: its name, as the folder depends on the system; `link`: by which the host adds the entry itself. */
const guideTo = (host: HostRow, url: string, tokenVariable: string | undefined) => {
  const place = host.places(ANY_USER).find(({ scope, isOld }) => scope === 'user' && isOld !== true)
  const entry = entryFor(host, { kind: 'http', url, tokenVariable })
  if (place === undefined || entry === undefined) return undefined
  const { label, afterwards } = host
  const link = host.link?.('trunkline', entry)
  const file = place.path.replace(/^~\/\.config\/.*\//, '')
  return { label, file, text: editedText(place, entry), afterwards, ...(link !== undefined && { link }) }
}
