/** One entry of `servers`, validated and complete: with defaults, absolute paths and the whole environment of its process. */
import { DEFAULT_SERVER } from '../../../downstream/options.ts'
import type { ServerOptions } from '../../../downstream/options.ts'
import { isLoopbackHost } from '../../../transport/loopback.ts'
import type { Launch } from '../../../transport/process/process-group.ts'
import { buildCredential } from './credential.ts'
import { childEnvironment } from './child-environment.ts'
import type { GatheredServer } from '../../read/gather.ts'
import type { RuntimeEnvironment } from '../../runtime-environment.ts'
import { buildCuration } from './curation.ts'
import { buildHeaders } from './headers.ts'
import { fillFrom } from '../fill.ts'
import { proxiesOf, readProxies } from './proxies.ts'
import { buildTls } from '../tls.ts'
import {
  defaultsSchema,
  lifecycleSchema,
  serverLimitsSchema,
  serverLockSchema,
  serverSchema,
  timeoutsSchema,
} from '../../schema/server-schema.ts'
import type { Defaults, ServerEntry } from '../../schema/server-schema.ts'
import { reporterAt } from '../../syntax/problems.ts'
import type { Problem, ReportProblem } from '../../syntax/problems.ts'
import { asTyped, changeChild } from '../../syntax/tree.ts'
import { validate } from '../../syntax/validate.ts'
import { absolutePath } from '../../syntax/variables.ts'

/** `undefined`: the entry has problems, which were added. */
export const buildServer = (
  gathered: GatheredServer,
  defaults: Defaults,
  context: RuntimeEnvironment,
  problems: Problem[],
): ServerOptions | undefined => {
  // Values of the environment, arguments and headers are texts: a number keeps the digits that were typed.
  const tree = ['env', 'args', 'headers', 'credentials'].reduce((tree, key) => changeChild(tree, key, asTyped), gathered.tree)
  const entry = validate(serverSchema, tree, problems)
  if (entry === undefined) return undefined
  const before = problems.length
  const report = reporterAt(tree, problems)
  checkEntry(entry, report)
  const headers = buildHeaders(entry, report)
  const credential = buildCredential(entry.credentials, entry.url, (path, ...texts) => report(['credentials', ...path], ...texts))
  const tls = buildTls(entry, gathered.folder, context, report)
  const curation = buildCuration(entry, tree, report)
  if (problems.length > before) return undefined
  const general = fillFrom(serverLockSchema, fillFrom(defaultsSchema, DEFAULT_SERVER, defaults), defaults.lock)
  const options = fillFrom(serverLockSchema, fillFrom(serverSchema, general, entry), entry.lock)
  return {
    ...fillFrom(lifecycleSchema, fillFrom(lifecycleSchema, options, defaults.lifecycle), entry.lifecycle),
    key: gathered.key,
    prefix: entry.prefix ?? gathered.key,
    displayName: entry.display_name ?? gathered.key,
    place: tree.place,
    launch: buildLaunch(entry, gathered.folder, defaults, context),
    url: entry.url,
    proxies: proxiesOf(entry.proxy, readProxies(context.env).rules),
    tls,
    headers,
    credential,
    roots: entry.roots?.map((root) =>
      /^[a-z][a-z0-9+.-]+:/i.test(root) ? root : absolutePath(root, gathered.folder, context.home),
    ),
    timeouts: fillFrom(timeoutsSchema, fillFrom(timeoutsSchema, DEFAULT_SERVER.timeouts, defaults.timeouts), entry.timeouts),
    limits: fillFrom(serverLimitsSchema, fillFrom(serverLimitsSchema, DEFAULT_SERVER.limits, defaults.limits), entry.limits),
    uris: entry.resources?.rewrite ?? DEFAULT_SERVER.uris,
    curation,
    tags: [...new Set([...gathered.tags, ...(entry.tags ?? [])])],
  }
}

/** Reports members that need or exclude each other. */
const checkEntry = (entry: ServerEntry, report: ReportProblem): void => {
  const { command, url } = entry
  if (command === undefined && url === undefined) report([], 'neither command nor url', 'give one of them, or both')
  const [program = '', ...words] = command?.split(/\s+/) ?? []
  // A path may contain spaces; the name of a program does not.
  if (words.length > 0 && !/[/\\]/.test(program)) {
    const args = [...words, ...(entry.args ?? [])].map((word) => JSON.stringify(word)).join(', ')
    report(['command'], `${JSON.stringify(command)} contains arguments`, `write command: ${program}, args: [${args}]`)
  }
  for (const key of ['args', 'cwd', 'env'] as const) {
    if (command === undefined && entry[key]) report([key], `"${key}" without command has no effect`, 'remove it')
  }
  for (const key of ['headers', 'credentials', 'transport', 'http_client', 'proxy', 'tls'] as const) {
    if (command !== undefined && url === undefined && entry[key] && entry[key] !== 'auto') {
      report([key], `"${key}" without url has no effect`, 'remove it, or give the url that the process serves')
    }
  }
  if (url !== undefined && entry.proxy instanceof URL && isLoopbackHost(url.hostname))
    report(['proxy'], '"proxy" has no effect: this machine is never reached through a proxy', 'remove it')
  const exposed = new Map<string, string>()
  for (const [original, name] of Object.entries(entry.alias ?? {})) {
    const other = exposed.get(name)
    if (other !== undefined) report(['alias', original], `"${name}" is already the alias of "${other}"`, 'choose another name')
    exposed.set(name, original)
  }
}

const buildLaunch = (entry: ServerEntry, folder: string, defaults: Defaults, context: RuntimeEnvironment): Launch | undefined => {
  if (entry.command === undefined) return undefined
  const { inherit, ...own } = entry.env ?? {}
  return {
    command: /[/\\]/.test(entry.command) ? absolutePath(entry.command, folder, context.home) : entry.command,
    args: entry.args ?? [],
    env: childEnvironment(context.env, inherit ?? defaults.env?.inherit, own, context.platform),
    cwd: absolutePath(entry.cwd ?? '.', folder, context.home),
  }
}
