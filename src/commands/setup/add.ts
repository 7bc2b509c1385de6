/**
 * `trunkline add`: writes one server into the configuration, by command, URL, name in the registry, `server.json` or bundle. Secrets go to
 * the `env_file`; an entry from a foreign description is shown before it is written.
 */
import { dirname } from 'node:path'
import { normaliseKey, RESERVED_KEYS, SERVER_KEY } from '../../config/schema/server-key.ts'
import { formatProblem } from '../../config/syntax/problems.ts'
import { diffLines } from '../../host-files/edit/diff.ts'
import { lookIn, readText } from '../../host-files/edit/editor.ts'
import { nameOf } from '../../host-files/found.ts'
import type { ServerDraft } from '../../host-files/found.ts'
import { namesIn, planImport, valuesOf } from '../../host-files/import.ts'
import { readIncluded } from '../../host-files/included.ts'
import { isSeenByGit, readOurFile, updateOurFile, withServers } from '../../host-files/our-file.ts'
import type { OurFile } from '../../host-files/our-file.ts'
import { problemsOfDraft } from '../../host-files/usable.ts'
import { operatorCommand } from '../../operator-command.ts'
import { canAsk, confirm } from '../terminal/ask.ts'
import { refuseChangeErrors, textWith } from './import.ts'
import type { Writing } from './import.ts'
import { sourceOf } from './server-source.ts'
import type { SourceOptions } from './server-source.ts'
import { CommandError, EXIT } from '../terminal/io.ts'
import { printJson, printLines, printResult, remarkLines } from '../terminal/print.ts'

export interface AddOptions extends SourceOptions {
  readonly prefix?: string
  readonly as?: string
  readonly force?: boolean
  readonly yes?: boolean
}

export const add = async (writing: Writing, words: readonly string[], options: AddOptions): Promise<number> => {
  const { file, named, context, io, json } = writing
  const ours = await refuseChangeErrors(() => readOurFile(file, context))
  const source = await refuseChangeErrors(() =>
    sourceOf(writing, words, options, lookIn(ours.text === undefined ? {} : readText(file, ours.text), ['registry'])),
  )
  const included = await readIncluded(file, named.slice(1), context)
  const isForced = options.force === true
  const taken = namesIn(isForced ? included.servers : { ...included.servers, ...ours.servers })
  const key = keyFor(options.as ?? source.name, options.as !== undefined || words.length > 1, taken)
  const place = included.places.get(key)
  if (place !== undefined)
    throw new CommandError(
      EXIT.config,
      `server "${key}" is defined at ${place}, which belongs to this configuration; choose another name, or change it there`,
    )
  const draft = { ...source.draft, ...(options.prefix === undefined ? {} : { prefix: options.prefix }) }
  refuseUnusable(writing, key, draft, { ...included.servers, ...ours.servers })
  const found = {
    scope: 'user',
    file,
    name: key,
    place: '',
    draft,
    variables: source.open.map((name) => ({ name, fallback: undefined })),
    folder: undefined,
    isOff: false,
  } as const
  const planFor = (now: typeof ours) => {
    const all = Object.entries({ ...included.servers, ...now.servers })
    const others = isForced ? {} : Object.fromEntries(all.filter(([name]) => name !== key))
    return planImport([found], { servers: others, env: context.env, envFile: now.values, folder: '' })
  }
  const planned = planFor(ours)
  io.redactor.learn([...planned.secrets.values()])
  const [existing] = planned.known
  if (existing !== undefined && !isForced)
    throw new CommandError(
      EXIT.config,
      `${included.places.get(existing.key) ?? nameOf(file, context)} already has this server as "${existing.key}"; add it twice with --force`,
    )
  const entries = (plan: typeof planned) => plan.servers.map((server) => ({ ...server, key }))
  if (source.isForeign && options.yes !== true) {
    const text = await textWith(ours, { servers: entries(planned), values: valuesOf(planned) })
    remarkLines(io, diffLines(ours.text ?? '', text))
    if (!canAsk(io)) throw new CommandError(EXIT.usage, `this is what ${JSON.stringify(words[0])} would run; add it with --yes`)
    if (!(await confirm(io, `Add ${key} to ${nameOf(file, context)}?`, false))) {
      await printResult(writing, { file, key, written: false }, () => ['  nothing was added'])
      return EXIT.ok
    }
  }
  const written = await refuseChangeErrors(() =>
    updateOurFile(file, context, (now) => {
      if (Object.hasOwn(now.servers, key) && !isForced)
        throw new CommandError(EXIT.config, `${nameOf(file, context)} has a server "${key}"; choose another name, or --force`)
      const plan = planFor(now)
      const values = valuesOf(plan)
      return { text: withServers(now, { servers: entries(plan), values }), values }
    }),
  )
  const secrets = [...planned.secrets.keys()]
  const unset = [...planned.unset.keys()]
  if (json) {
    await printJson(io, { file, key, entry: planned.servers[0]?.draft, secrets, unset })
    return EXIT.ok
  }
  const envFile = written.envFile === undefined ? undefined : nameOf(written.envFile, context)
  await printLines(io, [
    `  added ${key} to ${nameOf(file, context)}${secrets.length === 0 ? '' : `; ${secrets.join(', ')} in ${envFile} (0600)`}`,
    ...unset.map((name) => `  ▲ ${name} is not set: write it into ${envFile}`),
    ...(written.envFile !== undefined && (await isSeenByGit(written.envFile))
      ? [`  ▲ ${envFile} is not in .gitignore: add it before you commit`]
      : []),
    `  Next: ${operatorCommand(named, 'check', '--live')}`,
  ])
  return EXIT.ok
}

/** Throws for an entry that the configuration would refuse. */
const refuseUnusable = ({ file, context }: Writing, key: string, draft: ServerDraft, others: OurFile['servers']): void => {
  const problems = problemsOfDraft(draft, key, 'nothing was added:', dirname(file), context)
  if (problems.length > 0) throw new CommandError(EXIT.usage, problems.map(formatProblem).join('\n'))
  const prefix = typeof draft['prefix'] === 'string' ? draft['prefix'] : key
  if (RESERVED_KEYS.includes(prefix))
    throw new CommandError(EXIT.usage, `nothing was added: prefix "${prefix}" is reserved; choose another with --prefix`)
  const on = Object.entries(others).filter(([name, { enabled }]) => name !== key && enabled !== false)
  for (const [name, other] of on) {
    const taken = [name, other['prefix']]
    if (taken.includes(prefix))
      throw new CommandError(
        EXIT.usage,
        `nothing was added: "${prefix}" is already the key or prefix of server "${name}"; choose another with --prefix`,
      )
    if (other['prefix'] === key)
      throw new CommandError(EXIT.usage, `nothing was added: "${key}" is the prefix of server "${name}"; choose another name`)
  }
}

/** A typed name must be a valid key; a foreign name is converted to one. */
const keyFor = (name: string, isTyped: boolean, taken: readonly string[]): string => {
  if (!isTyped)
    return SERVER_KEY.test(name) && !RESERVED_KEYS.includes(name) && !taken.includes(name)
      ? name
      : normaliseKey(name, (key) => taken.includes(key))
  if (!SERVER_KEY.test(name) || RESERVED_KEYS.includes(name))
    throw new CommandError(
      EXIT.usage,
      `"${name}" is not a key of a server (a-z, 0-9 and -, at most 20, beginning with a letter); call it "${normaliseKey(name)}"`,
    )
  return name
}
