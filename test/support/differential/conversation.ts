/**
 * What a random host says and a random server answers, as data: JSON text with the spelling it is sent in, so that a failing
 * conversation can be shrunk, kept in a file and said again.
 */
import * as fc from 'fast-check'

/** Members of an object as they are written: key text (with quotes) and value text. */
export type Written = readonly (readonly [key: string, value: string])[]

/** How an object is put on the wire; the same data in another spelling is another message. */
export interface Spelling {
  readonly space: string
  /** Rotates the order of the members. */
  readonly turn: number
  /** Writes one character of every n-th known key as an escape; 0: none. */
  readonly escapeEvery: number
}

export interface ProgressNote {
  readonly value: number
  readonly more: Written
}

export type Block =
  | { readonly type: 'text' | 'audio' | 'image' | 'vendor'; readonly more: Written }
  | { readonly type: 'resource_link' | 'resource'; readonly uri: string; readonly more: Written }

/** What a server asks before it answers. */
export interface Question {
  readonly method: 'elicitation/create' | 'sampling/createMessage'
  readonly message: string
  readonly more: Written
  /** What the host answers with, beside what the method requires. */
  readonly answer: Written
}

export interface Reply {
  readonly questions: readonly Question[]
  readonly progress: readonly ProgressNote[]
  /** Levels and further members of log messages. */
  readonly logs: readonly { readonly level: string; readonly more: Written }[]
  readonly outcome:
    | {
        readonly kind: 'result'
        readonly blocks: readonly Block[] | undefined
        readonly structured: string | undefined
        readonly isError: boolean | undefined
        readonly more: Written
        readonly meta: Written | undefined
      }
    | { readonly kind: 'error'; readonly code: number; readonly message: string; readonly data: string | undefined }
  readonly spelling: Spelling
}

export interface Exchange {
  readonly method: 'tools/call' | 'prompts/get' | 'resources/read'
  /** The host's id, as text. */
  readonly id: string
  readonly arguments: string | undefined
  /** Members of `params` that no revision defines. */
  readonly more: Written
  readonly meta: Written | undefined
  readonly token: string | undefined
  readonly spelling: Spelling
  readonly reply: Reply
}

export interface Conversation {
  /** Sent one after the other, or all at once. */
  readonly isConcurrent: boolean
  readonly exchanges: readonly Exchange[]
}

const SCALARS = [
  'null',
  'true',
  'false',
  '0',
  '-0',
  '1.0',
  '1e400',
  '-1E+400',
  '1e-400',
  '0.1000',
  '123456789012345678901234567890',
  '9223372036854775807',
  '9007199254740993',
  '2.50e2',
  '""',
  '"\\ud800"',
  '"\\u0000"',
  '"\\u2028\\u2029"',
  '"\u2028"',
  '"é"',
  '"\\u00e9"',
  '"😀"',
  '"\\/"',
  '"see fs+file:///r"',
  '"data: x\\n\\nid: 1"',
  '"{\\"jsonrpc\\":\\"2.0\\",\\"id\\":1}"',
  '"\u007f"',
  '"\\"resource\\":{\\"uri\\":\\"file:///x\\"}"',
  '"\\"type\\":\\"resource_link\\""',
  '"\\\\"',
  '"</script>"',
  '"input_required"',
]

const KEYS = [
  '"x"',
  '"x-1"',
  '"caf\\u00e9"',
  '"café"',
  '""',
  '"a\\/b"',
  '"\\u0078y"',
  '"__proto__"',
  '"constructor"',
  '"toString"',
  '"😀"',
]
/** Keys inside of content: also those that mean something elsewhere. */
const INNER_KEYS = [
  ...KEYS,
  '"id"',
  '"uri"',
  '"name"',
  '"Name"',
  '"_meta"',
  '"result"',
  '"type"',
  '"method"',
  '"content"',
  '"resultType"',
]

const scalar = fc.constantFrom(...SCALARS)
const space = fc.constantFrom('', '', '', ' ', '\t', '  ')

const inner: fc.Arbitrary<string> = fc.letrec<{ value: string; object: string }>((tie) => ({
  value: fc.oneof(
    { maxDepth: 4, depthSize: 'small' },
    { arbitrary: scalar, weight: 4 },
    {
      arbitrary: fc
        .tuple(space, fc.array(tie('value'), { maxLength: 3 }))
        .map(([gap, items]) => `[${gap}${items.join(`,${gap}`)}${gap}]`),
      weight: 1,
    },
    { arbitrary: tie('object'), weight: 1 },
  ),
  object: fc
    .tuple(space, fc.array(fc.tuple(fc.constantFrom(...INNER_KEYS), tie('value')), { maxLength: 4 }))
    .map(
      ([gap, entries]) => `{${gap}${entries.map(([key, value]) => `${key}${gap}:${gap}${value}`).join(`${gap},${gap}`)}${gap}}`,
    ),
})).value

const innerObject: fc.Arbitrary<string> = fc
  .tuple(space, fc.array(fc.tuple(fc.constantFrom(...INNER_KEYS), inner), { maxLength: 4 }))
  .map(([gap, entries]) => `{${entries.map(([key, value]) => `${key}:${gap}${value}`).join(`,${gap}`)}}`)

/** Unknown members, each key once: what a repeated one means is the receiver's business, and parsers differ. */
const unknown = (maxLength = 3): fc.Arbitrary<Written> =>
  fc.uniqueArray(fc.tuple(fc.constantFrom(...KEYS), inner), { maxLength, selector: ([key]) => JSON.parse(key) as string })

const VENDOR_META = ['"com.example/a"', '"com.example\\/b"', '"plain"', '"traceparent"', '"__proto__"', '"caf\\u00e9/x"']
const meta: fc.Arbitrary<Written> = fc.uniqueArray(fc.tuple(fc.constantFrom(...VENDOR_META), inner), {
  maxLength: 3,
  selector: ([key]) => JSON.parse(key) as string,
})

const spelling: fc.Arbitrary<Spelling> = fc.record({
  space,
  turn: fc.nat({ max: 5 }),
  escapeEvery: fc.constantFrom(0, 0, 0, 1, 2, 3),
})

const URIS = [
  'file:///srv/a.txt',
  'note://x',
  'ui://app/view',
  'https://example.com/a',
  'urn:isbn:1',
  'fs+file:///y',
  'relative/a.txt',
]

const block: fc.Arbitrary<Block> = fc.oneof(
  fc.record({ type: fc.constantFrom('text' as const, 'audio' as const, 'image' as const, 'vendor' as const), more: unknown(2) }),
  fc.record({
    type: fc.constantFrom('resource_link' as const, 'resource' as const),
    uri: fc.constantFrom(...URIS),
    more: unknown(2),
  }),
)

const CODES = [-32602, -32603, -32600, -32700, -1, 1, 4711, -32000, -32001, -32010, -32050, -32099, -31999]

const question: fc.Arbitrary<Question> = fc.record({
  method: fc.constantFrom('elicitation/create' as const, 'sampling/createMessage' as const),
  message: fc.constantFrom('"Which?"', '"caf\\u00e9 \\"x\\""', '"two\\nlines"', '"a\\/b"'),
  more: unknown(2),
  answer: unknown(2),
})

const reply: fc.Arbitrary<Reply> = fc.record({
  questions: fc.oneof(
    { weight: 5, arbitrary: fc.constant([]) },
    { weight: 1, arbitrary: fc.array(question, { minLength: 1, maxLength: 2 }) },
  ),
  progress: fc.array(fc.record({ value: fc.nat({ max: 100 }), more: unknown(2) }), { maxLength: 3 }),
  logs: fc.array(
    fc.record({ level: fc.constantFrom('debug', 'info', 'notice', 'warning', 'error', 'critical'), more: unknown(2) }),
    { maxLength: 2 },
  ),
  outcome: fc.oneof(
    {
      weight: 4,
      arbitrary: fc.record({
        kind: fc.constant('result' as const),
        blocks: fc.option(fc.array(block, { maxLength: 3 }), { nil: undefined, freq: 8 }),
        structured: fc.option(fc.oneof({ weight: 3, arbitrary: innerObject }, { weight: 1, arbitrary: inner }), {
          nil: undefined,
        }),
        isError: fc.option(fc.boolean(), { nil: undefined }),
        more: unknown(2),
        meta: fc.option(meta, { nil: undefined }),
      }),
    },
    {
      weight: 1,
      arbitrary: fc.record({
        kind: fc.constant('error' as const),
        code: fc.constantFrom(...CODES),
        message: scalar.map((text) => (text.startsWith('"') ? text : JSON.stringify(text))),
        data: fc.option(inner, { nil: undefined }),
      }),
    },
  ),
  spelling,
})

const exchange: fc.Arbitrary<Exchange> = fc.record({
  method: fc.constantFrom('tools/call' as const, 'tools/call' as const, 'prompts/get' as const, 'resources/read' as const),
  id: fc.constantFrom('7', '"7"', '0', '-3', '"a-\\u0062"', '"é"', '9007199254740991', '"\\/"'),
  arguments: fc.option(innerObject, { nil: undefined }),
  more: unknown(),
  meta: fc.option(meta, { nil: undefined }),
  token: fc.option(fc.constantFrom('1', '"t"', '"\\u0074-é"', '0'), { nil: undefined }),
  spelling,
  reply,
})

export const conversations: fc.Arbitrary<Conversation> = fc.record({
  isConcurrent: fc.boolean(),
  exchanges: fc.array(exchange, { minLength: 1, maxLength: 3 }),
})

/** Writes an object: members in the order and with the white space and escapes of a spelling. */
export const write = (members: Written, { space: gap, turn, escapeEvery }: Spelling): string => {
  const shift = members.length === 0 ? 0 : turn % members.length
  const ordered = [...members.slice(shift), ...members.slice(0, shift)]
  const spelled = ordered.map(([key, value], at) => {
    const isEscaped = escapeEvery > 0 && at % escapeEvery === 0 && /^"[a-z]/.test(key)
    const text = isEscaped ? `"\\u00${key.charCodeAt(1).toString(16)}${key.slice(2)}` : key
    return `${text}${gap}:${gap}${value}`
  })
  return `{${gap}${spelled.join(`${gap},${gap}`)}${gap}}`
}
