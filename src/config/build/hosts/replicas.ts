/** What replicas share (`replicas`, `store`), and the key that all of them need. */
import type { Gathered } from '../../read/gather.ts'
import { reporterAt } from '../../syntax/problems.ts'
import type { Problem } from '../../syntax/problems.ts'
import type { StoreOptions } from '../../../store/store-options.ts'
import type { RuntimeEnvironment } from '../../runtime-environment.ts'
import { child, scalarTexts } from '../../syntax/tree.ts'
import type { Tree } from '../../syntax/tree.ts'
import { decodedLogin } from '../../../values/url-login.ts'
import { readTls } from '../tls.ts'

/** Adds problems where replicas could not reach each other, or could not open each other's sealed tokens. */
export const checkReplicas = ({ settings, sections }: Gathered, problems: Problem[]): void => {
  const hasUrl = settings.replicas?.url !== undefined
  if (sections.has('store') && !hasUrl) {
    const remedy = 'set the URL at which the others reach this one: replicas: { url: "http://${POD_IP}:7420" }'
    reporterAt(sections.get('store'), problems)([], '"store" needs replicas.url', remedy)
  }
  const section = hasUrl ? 'replicas' : 'store'
  if (settings.state?.key !== undefined || settings[section] === undefined) return
  const remedy = 'give all replicas the same one: state: { key: "${TRUNKLINE_KEY}" }, made with openssl rand -base64 32'
  reporterAt(sections.get(section), problems)([], `"${section}" needs state.key`, remedy)
}

/** `store`, with the content of its `tls` files; adds problems for files that cannot be used. */
export const buildStore = (gathered: Gathered, context: RuntimeEnvironment, problems: Problem[]): StoreOptions | undefined => {
  const { store } = gathered.settings
  const section = gathered.sections.get('store')
  if (store === undefined || section === undefined) return undefined
  const { tls, ...rest } = store
  if (tls === undefined) return rest
  const report = reporterAt(section, problems)
  if (store.urls.every((url) => !url.startsWith('rediss:')))
    report(['tls'], '"tls" has no effect on redis://', 'remove it, or give rediss:// URLs')
  return { ...rest, tls: readTls(tls, gathered.folders.get('store') ?? context.cwd, context, report) }
}

/** URLs of the store that hold a password, and the passwords. */
export const secretsOfStore = (store: Tree | undefined): string[] => [
  ...scalarTexts(child(store, 'sentinel_password')),
  ...scalarTexts(store).flatMap((text) => {
    const url = URL.parse(text)
    return url === null || url.password === '' ? [] : [text, url.password, decodedLogin(url.password)]
  }),
]
