/** Random JSON text in every legal spelling, and a writer of objects in a given spelling. Text, never values: spelling is the subject. */
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

export const PLAIN: Spelling = { space: '', turn: 0, escapeEvery: 0 }

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
  '"fs+file:///whole"',
  '"fs\\u002bfile:///escaped"',
  '"ui://~fs/app"',
  '"fs+:relative"',
  '"other+file:///x"',
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
const VENDOR_META = ['"com.example/a"', '"com.example\\/b"', '"plain"', '"traceparent"', '"__proto__"', '"caf\\u00e9/x"']

export const scalar = fc.constantFrom(...SCALARS)
export const space = fc.constantFrom('', '', '', ' ', '\t', '  ')
/** A scalar that is a string. */
export const someString = scalar.map((text) => (text.startsWith('"') ? text : JSON.stringify(text)))

/** Any JSON value, a few levels deep. */
export const inner: fc.Arbitrary<string> = fc.letrec<{ value: string; object: string }>((tie) => ({
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

export const innerObject: fc.Arbitrary<string> = fc
  .tuple(space, fc.array(fc.tuple(fc.constantFrom(...INNER_KEYS), inner), { maxLength: 4 }))
  .map(([gap, entries]) => `{${entries.map(([key, value]) => `${key}:${gap}${value}`).join(`,${gap}`)}}`)

/** Unknown members, each key once: what a repeated one means is the receiver's business, and parsers differ. */
export const unknown = (maxLength = 3): fc.Arbitrary<Written> =>
  fc.uniqueArray(fc.tuple(fc.constantFrom(...KEYS), inner), { maxLength, selector: ([key]) => JSON.parse(key) as string })

export const meta: fc.Arbitrary<Written> = fc.uniqueArray(fc.tuple(fc.constantFrom(...VENDOR_META), inner), {
  maxLength: 3,
  selector: ([key]) => JSON.parse(key) as string,
})

export const spelling: fc.Arbitrary<Spelling> = fc.record({
  space,
  turn: fc.nat({ max: 5 }),
  escapeEvery: fc.constantFrom(0, 0, 0, 1, 2, 3),
})

/** Writes an object: members in the order and with the white space and escapes of a spelling. */
export const write = (members: Written, { space: gap, turn, escapeEvery }: Spelling = PLAIN): string => {
  const shift = members.length === 0 ? 0 : turn % members.length
  const ordered = [...members.slice(shift), ...members.slice(0, shift)]
  const spelled = ordered.map(([key, value], at) => {
    const isEscaped = escapeEvery > 0 && at % escapeEvery === 0 && /^"[a-z]/.test(key)
    const text = isEscaped ? `"\\u00${key.charCodeAt(1).toString(16)}${key.slice(2)}` : key
    return `${text}${gap}:${gap}${value}`
  })
  return `{${gap}${spelled.join(`${gap},${gap}`)}${gap}}`
}

/** One message, without white space around. */
export const message = (members: Written, how: Spelling = PLAIN): string => write([['"jsonrpc"', '"2.0"'], ...members], how)
