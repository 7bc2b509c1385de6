/**
 * Finds plain-text secrets in entries of servers, by their names or by their form, and replaces them by `${VAR}`. `import` writes the values to
 * `.env`.
 */
import { isList, jsonObject, memberOf } from '../../values/json-object.ts'

/** Names of variables, headers and options whose values are secrets. */
export const SECRET_NAME = /token|secret|passw|credential|authorization|cookie|(api|private|access)[-_]?key/i

/** Names of secrets in options and connection strings, beside those that the configuration knows. */
const NAMES = new RegExp(`${SECRET_NAME.source}|(^|[-_])(pat|pwd|auth|apikey|api_key|key|dsn|jwt)$`, 'i')

/** Tokens that are recognized by their form. */
const FORMS =
  /^(gh[pousr]_\w{20,}|github_pat_\w{20,}|glpat-[\w-]{16,}|sk-[\w-]{16,}|sk_(live|test)_\w{10,}|xox[abprs]-[\w-]{10,}|xapp-[\w-]{10,}|AKIA[A-Z0-9]{12,}|AIza[\w-]{30,}|ya29\.[\w-]{20,}|eyJ[\w-]{10,}\.[\w-]{10,}\.[\w-]*|npm_\w{20,}|lin_api_\w{10,}|ntn_\w{10,}|secret_\w{20,}|pk_(live|test)_\w{10,}|hf_\w{20,}|tvly-[\w-]{10,}|BSA\w{20,})$/

/** The value of an `Authorization` header. */
const CREDENTIAL = /^(?:Bearer|Basic)\s+\S/i

/** A reference that the started program replaces. */
const PLACEHOLDER = /^\$\$\{[^{}]*\}$/

/** A member of a JSON text. */
const JSON_MEMBER = /"([\w-]+)"(\s*:\s*)"((?:[^"\\]|\\.)+)"/g

/** `scheme://user:password@` */
const USER_INFO = /^([a-z][\w+.-]*:\/\/[^\s/:@]*:)([^\s/@]+)(@)/i

const isReference = (value: string): boolean => value.includes('${') && !value.includes('$${')
const isSecretName = (name: string): boolean => NAMES.test(name)

/** Stores a value. `proposed`: a name for its variable. Returns the name that is used. */
export type KeepSecret = (proposed: string, value: string) => string

type Draft = Readonly<Record<string, unknown>>

/** Returns the draft with its secrets replaced. `key`: of the server, used in names of variables. */
export const withoutSecrets = (key: string, draft: Draft, keep: KeepSecret): Draft => {
  const own = variableName(key)
  const hide = (proposed: string, value: string): string =>
    PLACEHOLDER.test(value) ? value : `\${${keep(proposed, unescape(value))}}`
  const inValue = (proposed: string, value: string): string => {
    if (isReference(value)) return value
    const [, scheme, rest] = /^((?:Bearer|Basic|Token)\s+)(\S.*)$/i.exec(value) ?? []
    return scheme === undefined || rest === undefined ? hide(proposed, value) : `${scheme}${hide(proposed, rest)}`
  }
  const named = (members: unknown, nameOf: (name: string) => string): unknown =>
    typeof members !== 'object' || members === null
      ? members
      : Object.fromEntries(
          Object.entries(members).map(([name, value]) => {
            if (typeof value !== 'string' || value === '') return [name, value]
            if (isSecretName(name) || FORMS.test(value) || CREDENTIAL.test(value)) return [name, inValue(nameOf(name), value)]
            return [name, inUrl(value, nameOf(name), hide)]
          }),
        )
  const changes: Record<string, unknown> = {}
  if (draft['env'] !== undefined) changes['env'] = named(draft['env'], variableName)
  if (draft['headers'] !== undefined)
    changes['headers'] = named(draft['headers'], (name) =>
      /^authorization$/i.test(name) ? `${own}_TOKEN` : `${own}_${variableName(name.replace(/^x-/i, ''))}`,
    )
  if (typeof draft['url'] === 'string') changes['url'] = inUrl(draft['url'], `${own}_KEY`, hide)
  if (isList(draft['args'])) changes['args'] = inArguments(draft['args'], own, hide)
  const oauth = memberOf(draft['credentials'], 'oauth')
  const secret = memberOf(oauth, 'client_secret')
  if (typeof secret === 'string' && !isReference(secret))
    changes['credentials'] = { oauth: { ...jsonObject(oauth), client_secret: hide(`${own}_CLIENT_SECRET`, secret) } }
  return { ...draft, ...changes }
}

/** Replaces `--api-key VALUE`, and secrets inside of one argument. */
const inArguments = (args: readonly unknown[], own: string, hide: KeepSecret): unknown[] =>
  args.map((argument, at) => {
    if (typeof argument !== 'string' || argument === '' || isReference(argument)) return argument
    const before = args[at - 1]
    const option = typeof before === 'string' ? /^--?([\w-]+)$/.exec(before)?.[1] : undefined
    return option !== undefined && isSecretName(option) && !argument.startsWith('-')
      ? hide(ownName(own, option), argument)
      : inArgument(argument, `${own}_TOKEN`, own, hide)
  })

/**
 * Replaces `--api-key=VALUE`, `-e NAME=VALUE`, `Authorization: Bearer VALUE`, members of a JSON text, passwords in URLs, and bare tokens.
 * `proposed`: for a token without a name.
 */
const inArgument = (argument: string, proposed: string, own: string, hide: KeepSecret): string => {
  const [, start, name, value] = /^((?:--?)?([\w-]+)=)(.+)$/.exec(argument) ?? []
  if (start !== undefined && name !== undefined && value !== undefined) {
    // `--api-key=VALUE`, or `-e NAME=VALUE` for docker.
    const variable = start.startsWith('-') ? ownName(own, name) : variableName(name)
    return start + (isSecretName(name) ? hide(variable, value) : inArgument(value, variable, own, hide))
  }
  const [, header, scheme = '', token] = /^([\w-]+:\s*)((?:Bearer|Basic|Token)\s+)?(\S+)$/i.exec(argument) ?? []
  if (header !== undefined && token !== undefined && isSecretName(header.replace(/:\s*$/, '')))
    return `${header}${scheme}${hide(`${own}_TOKEN`, token)}`
  if (FORMS.test(argument)) return hide(proposed, argument)
  if (/^\s*[{[]/.test(argument)) return inJson(argument, own, hide)
  return inUrl(argument, proposed === `${own}_TOKEN` ? `${own}_KEY` : proposed, hide)
}

const ownName = (own: string, name: string): string => {
  const variable = variableName(name)
  return variable.startsWith(own) ? variable : `${own}_${variable}`
}

/** Replaces secrets in a JSON text, such as the argument of `--config`. */
const inJson = (text: string, own: string, hide: KeepSecret): string =>
  text.replaceAll(JSON_MEMBER, (found, name: string, colon: string, value: string) =>
    isSecretName(name) || FORMS.test(value) ? `"${name}"${colon}"${hide(ownName(own, name), value)}"` : found,
  )

/** Replaces the password of a URL, and secrets in its query. */
const inUrl = (text: string, proposed: string, hide: KeepSecret): string => {
  if (!/^[a-z][\w+.-]*:\/\//i.test(text) || text.includes('${')) return text
  return text
    .replace(USER_INFO, (_, start: string, password: string, end: string) => start + hide(`${proposed}_PASSWORD`, password) + end)
    .replaceAll(/([?&])([\w.-]+)=([^&#\s]+)/g, (found, mark: string, name: string, value: string) =>
      value.includes('${') || !(isSecretName(name) || FORMS.test(value)) ? found : `${mark}${name}=${hide(proposed, value)}`,
    )
}

/** Makes a name of an environment variable. */
export const variableName = (text: string): string =>
  text
    .toUpperCase()
    .replaceAll(/[^A-Z0-9]+/g, '_')
    .replaceAll(/^_|_$/g, '')
    .replace(/^(?=\d)/, '_')

const unescape = (value: string): string => value.replaceAll('$${', '${')
