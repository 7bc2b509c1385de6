/** What several replicas need of each other (`replicas`, `store`): the same key. */
import type { Gathered } from '../../read/gather.ts'
import type { Problem } from '../../syntax/problems.ts'
import type { StoreOptions } from '../../../store/store-options.ts'
import type { Context } from '../../runtime-environment.ts'
import { child, scalars } from '../../syntax/tree.ts'
import type { Tree } from '../../syntax/tree.ts'
import { readTls } from '../tls.ts'

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

/** `store`, with what its `tls` names; adds problems for files that cannot be used. */
export const buildStore = (gathered: Gathered, context: Context, problems: Problem[]): StoreOptions | undefined => {
  const { store } = gathered.settings
  const section = gathered.sections.get('store')
  if (store === undefined || section === undefined) return undefined
  const { tls, ...rest } = store
  if (tls === undefined) return rest
  const complain = (path: readonly string[], message: string, remedy: string): void => {
    const tree = path.reduce<Tree | undefined>(child, section) ?? section
    problems.push({ place: tree.place, path: ['store', ...path].join('.'), message, remedy })
  }
  if (store.urls.every((url) => !url.startsWith('rediss:')))
    complain(['tls'], '"tls" has no effect on redis://', 'remove it, or give rediss:// URLs')
  return { ...rest, tls: readTls(tls, gathered.folders.get('store') ?? context.cwd, context, complain) }
}

/** URLs of the store that hold a password, and the passwords. */
export const secretsOfStore = (store: Tree | undefined): string[] => [
  ...scalars(store && child(store, 'sentinel_password')).map(({ value }) => String(value ?? '')),
  ...scalars(store).flatMap(({ value }) => {
    const url = URL.parse(String(value ?? ''))
    return url === null || url.password === '' ? [] : [String(value), url.password, decodeURIComponent(url.password)]
  }),
]
