/**
 * What a random server offers, as the JSON text of its definitions, and what a random configuration makes of it. Names of every
 * kind, schemas that must not be parsed, members that no revision defines.
 */
import { createHash } from 'node:crypto'
import * as fc from 'fast-check'
import { meta, unknown, write } from './json.ts'
import type { Written } from './json.ts'

/** One entry of a list: what names it, and all its other members. */
export interface Definition {
  readonly id: string
  readonly members: Written
}

export const LISTS = ['tools', 'prompts', 'resources', 'templates'] as const
export type ListName = (typeof LISTS)[number]
/** Method, member of the result and naming member of each list, and the kind of the notification that announces its changes. */
export const LIST_WORDS = {
  tools: { method: 'tools/list', member: 'tools', id: 'name', changed: 'tools' },
  prompts: { method: 'prompts/list', member: 'prompts', id: 'name', changed: 'prompts' },
  resources: { method: 'resources/list', member: 'resources', id: 'uri', changed: 'resources' },
  templates: { method: 'resources/templates/list', member: 'resourceTemplates', id: 'uriTemplate', changed: 'resources' },
} as const

export interface Catalog extends Readonly<Record<ListName, readonly Definition[]>> {
  /** Entries of one page of the server's. */
  readonly perPage: number
}

/** What the configuration says of the server: names are the server's own. */
export interface Curating {
  /** `filter.deny`, `prompts.deny`, `resources.deny`. */
  readonly hidden: readonly string[]
  /** `tools.<name>`. */
  readonly edits: readonly {
    readonly tool: string
    readonly name: string | undefined
    readonly title: string | undefined
    readonly description: string | undefined
    readonly readOnlyHint: boolean | undefined
    /** A pinned value of the argument `pinned`; hosts are not shown it where it is hidden. */
    readonly pin: { readonly value: string | number; readonly isHidden: boolean } | undefined
  }[]
  /** `alias`: the whole exposed name of what has that name, tools and prompts alike. */
  readonly alias: readonly { readonly tool: string; readonly exposed: string }[]
}

/** Where a host is connected: to the merged endpoint, to the bridge of the server, or to the server itself. */
export type Endpoint = 'merged' | 'bridge' | 'direct'

export interface HostSetting {
  readonly endpoint: Endpoint
  readonly revision: string
  /** Client capabilities, as JSON text; those that its revision does not know are left out. */
  readonly capabilities: string
}

export interface Setting {
  readonly catalog: Catalog
  readonly curating: Curating
  /** Of the server. */
  readonly prefix: string
  /** Of the gateway's own pages. */
  readonly pageMaxItems: number
  readonly hosts: readonly HostSetting[]
  /** Whether the program behind the server's URL can be changed for one of the other era. */
  readonly isMovable: boolean
}

/** Simple names come first, so that findings shrink to them. */
const NAMES = ['one', 'two', 'three', 'a b', 'é/x', 'x__y', 'UPPER.dot', 'toString', 'n'.repeat(60), `${'n'.repeat(60)}2`, '1']
const URIS = [
  'file:///one',
  'ui://two',
  'note://three',
  'https://example.com/four',
  'file:///with%20space?q=1#f',
  'x-y.z+w:opaque',
  'relative/five',
]
const TEMPLATES = ['file:///t/{name}', 'note://{+any}', 'ui://t/{x}', 'https://example.com/{id}', 'x:{?q,r}']

const INPUT_SCHEMAS = [
  '{"type":"object"}',
  '{"type":"object","properties":{"n":{"type":"number","minimum":1.0,"maximum":123456789012345678901234567890}}}',
  '{ "type" : "object", "$defs":{"d":{"const":-0}},"properties":{"d":{"$ref":"#/$defs/d"}},"required":["d"] }',
  '{"type":"object","properties":{"\\u0063af\\u00e9":{"enum":[1e400,"\\/"]},"__proto__":{}},"additionalProperties":false}',
  '{"$schema":"https://json-schema.org/draft/2020-12/schema","type":"object","x-vendor":{"type":1.0},"allOf":[{"$ref":"https://example.com/x"}]}',
]
/** Roots that legacy revisions know come first; the others are a modern server's. */
const OUTPUT_SCHEMAS = [
  '{"type":"object"}',
  '{"type":"object","properties":{"n":{"const":1.0}}}',
  '{"type":"array","items":{"type":"number","minimum":1.0}}',
  '{"oneOf":[{"type":"string"},{"$ref":"#\\/$defs\\/d"}],"$defs":{"d":{"const":0.10}}}',
  '{}',
]
/** Every tool that a configuration pins an argument of has this one. */
const PINNABLE = '{"type":"object","properties":{"pinned":{"type":"string"},"free":{"minimum":1.0}},"required":["pinned","free"]}'

const words = fc.constantFrom('"Does it."', '"caf\\u00e9 \\/ 😀"', '"two\\nlines"', '""')
const optional = (key: string, value: fc.Arbitrary<string>): fc.Arbitrary<Written> =>
  fc.option(
    value.map((text) => [[key, text]] as Written),
    { nil: [], freq: 2 },
  )
const membersOf = (...parts: fc.Arbitrary<Written>[]): fc.Arbitrary<Written> =>
  fc.tuple(...parts).map((found) => found.flat() as Written)
const anyMeta = optional(
  '"_meta"',
  meta.map((members) => write(members)),
)
const icons = optional('"icons"', fc.constantFrom('[]', '[{"src":"https:\\/\\/example.com/i.png","x":1.0}]'))

const definitions = (ids: readonly string[], members: fc.Arbitrary<Written>): fc.Arbitrary<readonly Definition[]> =>
  fc.uniqueArray(fc.record({ id: fc.constantFrom(...ids), members }), { minLength: 1, maxLength: 5, selector: ({ id }) => id })

const tools = definitions(
  NAMES,
  membersOf(
    optional('"title"', words),
    optional('"description"', words),
    fc.oneof(fc.constantFrom(...INPUT_SCHEMAS), fc.constant(PINNABLE)).map((text) => [['"inputSchema"', text]] as Written),
    optional('"outputSchema"', fc.constantFrom(...OUTPUT_SCHEMAS)),
    optional('"annotations"', fc.constantFrom('{}', '{"readOnlyHint":true,"title":"\\u0054","x":1.0}')),
    icons,
    anyMeta,
    unknown(2),
  ),
)
const prompts = definitions(
  NAMES,
  membersOf(
    optional('"title"', words),
    optional('"description"', words),
    optional('"arguments"', fc.constantFrom('[]', '[{"name":"n","required":true,"x":1.0}]')),
    icons,
    anyMeta,
    unknown(2),
  ),
)
const resourceMembers = membersOf(
  fc.constant([['"name"', '"n\\u0061me"']] as Written),
  optional('"title"', words),
  optional('"description"', words),
  optional('"mimeType"', fc.constant('"text\\/plain"')),
  optional('"size"', fc.constantFrom('1.0', '9007199254740993')),
  optional('"annotations"', fc.constant('{"priority":0.50,"lastModified":"2025-01-12T15:00:58Z"}')),
  icons,
  anyMeta,
  unknown(2),
)

export const catalog: fc.Arbitrary<Catalog> = fc.record({
  tools,
  prompts,
  resources: definitions(URIS, resourceMembers),
  templates: definitions(TEMPLATES, resourceMembers),
  perPage: fc.constantFrom(100, 2, 1),
})

const CAPABILITIES = [
  '{"elicitation":{"form":{},"url":{}},"sampling":{"tools":{}},"roots":{}}',
  '{"elicitation":{},"sampling":{}}',
  '{"roots":{"listChanged":true}}',
  '{}',
]

const PREFIXES = ['fs', 'fs', 'a', 'x-9', 'p'.repeat(20)]
const NOT_CURATED: Curating = { hidden: [], edits: [], alias: [] }

/** Settings for hosts of these revisions at these endpoints. */
export const settingsFor = (revisions: readonly string[], endpoints: readonly Endpoint[]): fc.Arbitrary<Setting> =>
  catalog.chain((chosen) => {
    // A name that is hashed cannot be told from one that nobody offers.
    const plain = (name: string): boolean => /^[a-z]{1,20}$/.test(name)
    const toolNames = chosen.tools.map(({ id }) => id).filter(plain)
    const hideable = [...toolNames, ...chosen.prompts.map(({ id }) => id).filter(plain)]
    const some = (names: readonly string[], maxLength: number): fc.Arbitrary<string[]> =>
      fc.subarray([...names], { minLength: 0, maxLength: Math.min(maxLength, names.length) })
    const edit = fc.record({
      name: fc.option(fc.constantFrom('renamed', 'another'), { nil: undefined }),
      title: fc.option(fc.constant('A title'), { nil: undefined }),
      description: fc.option(fc.constant('Other words.'), { nil: undefined }),
      readOnlyHint: fc.option(fc.boolean(), { nil: undefined }),
      pin: fc.option(fc.record({ value: fc.constantFrom('acme', 7), isHidden: fc.boolean() }), { nil: undefined }),
    })
    const curating: fc.Arbitrary<Curating> = fc.oneof(
      fc.constant(NOT_CURATED),
      fc.tuple(some(hideable, 1), some(toolNames, 1), edit, some(toolNames, 1)).map(([hidden, edited, changes, aliased]) => ({
        hidden,
        // What is hidden and renamed besides is a name that nobody offers.
        edits: edited.filter((tool) => !hidden.includes(tool)).map((tool) => ({ tool, ...changes })),
        alias: aliased.filter((tool) => !edited.includes(tool)).map((tool) => ({ tool, exposed: 'the-alias' })),
      })),
    )
    return fc
      .record({
        catalog: fc.constant(chosen),
        curating,
        prefix: fc.constantFrom(...PREFIXES),
        pageMaxItems: fc.constantFrom(5_000, 2),
        hosts: fc.array(
          fc.record({
            endpoint: fc.constantFrom(...endpoints),
            revision: fc.constantFrom(...revisions),
            capabilities: fc.constantFrom(CAPABILITIES[0] ?? '', ...CAPABILITIES),
          }),
          { minLength: 1, maxLength: 3 },
        ),
        isMovable: fc.constantFrom(false, false, true),
      })
      .map(plausible)
  })

/** A bridge of a curated server is half a merged endpoint: it has tests of its own. A host without a gateway cannot follow a server that moves. */
const plausible = (setting: Setting): Setting => {
  const { curating, hosts } = setting
  const isCurated = curating.hidden.length + curating.edits.length + curating.alias.length > 0
  const placed = isCurated ? hosts.map((host) => ({ ...host, endpoint: 'merged' as const })) : hosts
  return { ...setting, hosts: placed, isMovable: setting.isMovable && placed.every(({ endpoint }) => endpoint !== 'direct') }
}

/** The setting that leaves everything at its default. */
export const PLAIN_SETTING: Setting = {
  catalog: {
    tools: ['one', 'two', 'three'].map((id) => ({ id, members: [['"inputSchema"', '{"type":"object"}']] })),
    prompts: ['one', 'two', 'three'].map((id) => ({ id, members: [] })),
    resources: ['file:///one', 'ui://two', 'note://three'].map((id) => ({ id, members: [['"name"', '"n"']] })),
    templates: [{ id: 'file:///t/{name}', members: [['"name"', '"n"']] }],
    perPage: 100,
  },
  curating: NOT_CURATED,
  prefix: 'fs',
  pageMaxItems: 5_000,
  hosts: [{ endpoint: 'merged', revision: '2025-11-25', capabilities: CAPABILITIES[0] ?? '' }],
  isMovable: false,
}

/** What the configuration says, as the entry of the server in YAML would. */
export const entryOf = ({ hidden, edits, alias }: Curating): object => ({
  filter: { deny: hidden },
  prompts: { deny: hidden },
  tools: Object.fromEntries(
    edits.map(({ tool, name, title, description, readOnlyHint, pin }) => [
      tool,
      {
        ...(name !== undefined && { name }),
        ...(title !== undefined && { title }),
        ...(description !== undefined && { description }),
        ...(readOnlyHint !== undefined && { annotations: { readOnlyHint } }),
        ...(pin !== undefined && { args: { pinned: { value: pin.value, ...(pin.isHidden && { hide: true }) } } }),
      },
    ]),
  ),
  alias: Object.fromEntries(alias.map(({ tool, exposed }) => [tool, exposed])),
})

/**
 * BRIDGING 4.2 (B158 to B162), written apart from `src/`: `<prefix>__<name>`, or its beginning and a hash of the name. Where there is
 * no prefix, at a bridge (3.21), names and URIs are the server's own; the same in the functions below.
 */
export const exposedName = (prefix: string, { edits, alias }: Curating, list: ListName, original: string): string => {
  if (prefix === '') return original
  const aliased = alias.find(({ tool }) => tool === original)
  if (aliased !== undefined) return aliased.exposed
  const name = (list === 'tools' ? edits.find(({ tool }) => tool === original)?.name : undefined) ?? original
  const plain = `${prefix}__${name}`
  if (plain.length <= MAX_NAME && /^[A-Za-z0-9_-]+$/.test(plain)) return plain
  const head = plain.replaceAll(/[^A-Za-z0-9_-]/gu, '_').slice(0, MAX_NAME - HASH - 1)
  return `${head}_${base32(createHash('sha256').update(`${prefix}\0${name}`).digest()).slice(0, HASH)}`
}

const MAX_NAME = 48
const HASH = 8

/** RFC 4648, lower case, of the first 80 bits. */
const base32 = (digest: Buffer): string =>
  [...digest.subarray(0, 10)]
    .map((byte) => byte.toString(2).padStart(8, '0'))
    .join('')
    .replaceAll(/.{5}/g, (bits) => 'abcdefghijklmnopqrstuvwxyz234567'[Number.parseInt(bits, 2)] ?? '')

/** BRIDGING 4.4, rules 1 to 3 and 8: a URI in content. */
export const exposedUri = (prefix: string, uri: string): string => {
  if (prefix === '' || /^https?:/i.test(uri) || !/^[a-z][a-z0-9+.-]*:/i.test(uri)) return uri
  if (uri.startsWith('ui://')) return `ui://~${prefix}/${uri.slice('ui://'.length)}`
  return `${prefix}+${uri}`
}

/** The same in a list, where a relative one is put under the prefix as well (3.22). */
export const listedUri = (prefix: string, uri: string): string =>
  prefix === '' || /^(?:\{|[a-z][a-z0-9+.-]*[:{])/i.test(uri) ? exposedUri(prefix, uri) : `${prefix}+:${uri}`

export const exposedId = (prefix: string, curating: Curating, list: ListName, id: string): string =>
  list === 'tools' || list === 'prompts' ? exposedName(prefix, curating, list, id) : listedUri(prefix, id)

/** What hosts are shown of a list. */
export const shown = (chosen: Catalog, { hidden }: Curating, list: ListName): readonly Definition[] =>
  chosen[list].filter(({ id }) => !hidden.includes(id))

/** A definition as the server writes it. */
export const definitionText = (list: ListName, { id, members }: Definition): string =>
  write([[JSON.stringify(LIST_WORDS[list].id), JSON.stringify(id)], ...members])
