/** What several replicas need of each other (`replicas`, `store`): the same key. */
import type { Gathered } from '../read/gather.ts'
import type { Problem } from '../syntax/problems.ts'
import { scalars } from '../syntax/tree.ts'
import type { Tree } from '../syntax/tree.ts'

/** Adds problems where replicas could not open what another one has sealed, or could not reach each other. */
export const checkReplicas = ({ settings, sections }: Gathered, problems: Problem[]): void => {
  const store = sections.get('store')
  if (store !== undefined && settings.replicas?.url === undefined) {
    const remedy = 'say how the others reach this one: replicas: { url: "http://${POD_IP}:7420" }'
    problems.push({ place: store.place, path: 'store', message: '"store" needs replicas.url', remedy })
  }
  if (settings.state?.key !== undefined) return
  const named = (settings.replicas?.url !== undefined && 'replicas') || (settings.store !== undefined && 'store')
  const section = named === false ? undefined : sections.get(named)
  if (named === false || section === undefined) return
  const remedy = 'give all replicas the same one: state: { key: "${TRUNKLINE_KEY}" }, made with openssl rand -base64 32'
  problems.push({ place: section.place, path: named, message: `"${named}" needs state.key`, remedy })
}

/** URLs of the store that hold a password, and the passwords. */
export const secretsOfStore = (store: Tree | undefined): string[] =>
  scalars(store).flatMap(({ value }) => {
    const url = URL.parse(String(value ?? ''))
    return url === null || url.password === '' ? [] : [String(value), url.password, decodeURIComponent(url.password)]
  })
