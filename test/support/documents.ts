/** Random JSON documents as text, of the kinds that a gateway that parses and prints would damage. Same seed, same documents. */

/** A small generator of numbers in [0, 1): mulberry32. */
export const randomFrom = (seed: number): (() => number) => {
  let state = seed >>> 0
  return () => {
    state = (state + 0x6d2b79f5) >>> 0
    let mixed = Math.imul(state ^ (state >>> 15), state | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4294967296
  }
}

const SCALARS = [
  ['null', 'true', 'false', '0', '-0', '1.0', '1e400', '-1E+400', '1e-400', '0.1000', '123456789012345678901234567890'],
  ['9223372036854775807', '-9223372036854775808', '9007199254740993', '18446744073709551615', '2.50e2'],
  ['""', '"\\ud800"', '"\\udc00\\ud800"', '"\\u0000"', '"\\u2028\\u2029"', '"\u2028"', '"é"', '"\\u00e9"', '"😀"', '"\\/"'],
  [
    '"b+file:///r"',
    '"see a+file:///r"',
    '"data: x\\n\\nid: 1"',
    '"\\r\\n"',
    '"{\\"jsonrpc\\":\\"2.0\\"}"',
    '"\u007f"',
    '"</script>"',
  ],
].flat()
const KEYS = [
  'a',
  '__proto__',
  'constructor',
  'toString',
  'id',
  'jsonrpc',
  '',
  '\\u0061',
  'é',
  '\\ud800',
  'result',
  'uri',
  '_meta',
]
const SPACES = ['', '', '', ' ', '\t', '  ']

/** One object as text. `bytes`: how long a string it holds, for the rare large ones. */
export const documentFrom = (random: () => number, bytes = 0): string => {
  const pick = <T>(list: readonly T[]): T => list[Math.floor(random() * list.length)]!
  const value = (depth: number): string => {
    const kind = random()
    if (depth <= 0 || kind < 0.5) return pick(SCALARS)
    const space = pick(SPACES)
    const children = Array.from({ length: Math.floor(random() * 4) }, () => value(depth - 1))
    if (kind < 0.75) return `[${space}${children.join(`,${space}`)}${space}]`
    return object(children, space)
  }
  const object = (children: readonly string[], space: string): string =>
    `{${space}${children.map((child) => `"${pick(KEYS)}"${space}:${space}${child}`).join(`${space},`)}${space}}`
  const large = bytes === 0 ? [] : [`"${'x\\u00e9y'.repeat(Math.floor(bytes / 8))}"`]
  const deep = random() < 0.05 ? [`${'['.repeat(100)}${']'.repeat(100)}`] : []
  return object([...Array.from({ length: 1 + Math.floor(random() * 4) }, () => value(4)), ...large, ...deep], pick(SPACES))
}
