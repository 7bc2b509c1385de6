/**
 * The scan kernel: JSON in blocks of 64 bytes with 128-bit SIMD. AssemblyScript, compiled by `npm run kernel` to `../binary.ts`.
 *
 * It skips: given bytes that begin in a string or with a bracket, it finds where that string, object or array ends, however many windows
 * it takes, and counts depth, values and keys. Which bytes are escaped, and which stand in a string, is computed for a whole block without
 * a branch, as simdjson does (Langdale and Lemire, "Parsing Gigabytes of JSON per Second", 2019). What is not inside a string is checked
 * for a whole block, too, by what stands before each token; only brackets are taken one by one. A block with something rare in it, such as
 * an exponent, is checked token by token, and so are blocks that are not full.
 *
 * The surprise: it never says what is wrong. Where the bytes are no JSON, or exceed a limit, it answers `DOUBT`, and the plain scanner
 * reads the value again and words the error. So the kernel may doubt what is right, and must never take what is wrong.
 *
 * Gain: 10 KB of dense results cost 1.07 × raw in place of 1.67, 1 MB 0.65 in place of 2.69 (bench/notes.md).
 */

/** Results of `skipString` and `skipValue` beside an offset. */
const MORE: i32 = -1
const DOUBT: i32 = -2

/** What of the inside of strings is checked, in `CHECKS`: nothing, what stands near the beginning, all. */
const CHECK_BEGINNING: i32 = 1
const CHECK_ALL: i32 = 2
/** So many bytes of a string are its beginning at least; the plain scanner checks fewer on lenient input. */
const BEGINNING_BYTES: i32 = 64

// Memory: the state, which outlives a window, the open brackets, the window.
const STATE: usize = 2048
const IN_STRING: usize = STATE
const ESCAPED: usize = STATE + 4
const HEX_LEFT: usize = STATE + 8
const SCALAR: usize = STATE + 12
const EXPECTED: usize = STATE + 16
const DEPTH: usize = STATE + 20
const VALUES: usize = STATE + 24
const QUOTES: usize = STATE + 28
const BEGINNING: usize = STATE + 32
const MAX_DEPTH: usize = STATE + 36
const MAX_VALUES: usize = STATE + 40
const MAX_KEYS: usize = STATE + 44
const CHECKS: usize = STATE + 48
/** A word per level: the highest bit says object, the others count its keys. The innermost one is there between windows only. */
const STACK: usize = 4096
const MAX_LEVELS: i32 = 4096
const OBJECT: u32 = 0x80000000
/** Behind 64 KiB of window stand 64 bytes that are read and not used. */
const WINDOW: usize = 4096 + 4 * 4096

// What may come next. Behind a value stands the end of its container.
const ANY_VALUE: i32 = 1 // the first one
const OBJECT_VALUE: i32 = 2 // behind a colon
const ARRAY_VALUE: i32 = 3 // behind a comma
const FIRST_ELEMENT: i32 = 4 // or "]"
const FIRST_KEY: i32 = 5 // or "}"
const KEY: i32 = 6
const COLON: i32 = 7
const OBJECT_NEXT: i32 = 8 // "," or "}"
const ARRAY_NEXT: i32 = 9 // "," or "]"

// Bytes of tokens. A bracket and a brace differ in one bit.
const QUOTE: u8 = 0x22
const COMMA: u8 = 0x2c
const COLON_SIGN: u8 = 0x3a
const OPEN_BRACE: u8 = 0x7b
const CLOSE_BRACE: u8 = 0x7d
const CLOSE_BRACKET: u8 = 0x5d
const BRACE_BIT: u8 = 0x20

/** What a byte is to a number or a word: 0 nothing. */
const LETTERS = memory.data(256)
/** The automaton of numbers, `true`, `false` and `null`: 16 letters to a state, 0 is an error. */
const SCALARS = memory.data(21 * 16)
const SCALAR_BEGIN: i32 = 1
/** The states in which a number or a word may end: 3, 4, 6, 9, 13. */
const SCALAR_ENDS: i32 = (1 << 3) | (1 << 4) | (1 << 6) | (1 << 9) | (1 << 13)

function letter(code: i32, kind: i32): void {
  store<u8>(LETTERS + code, kind)
}

function step(from: i32, kind: i32, to: i32): void {
  store<u8>(SCALARS + (from << 4) + kind, to)
}

function digits(from: i32, to: i32): void {
  step(from, 3, to)
  step(from, 4, to)
}

/** Fills the tables. Called once. */
export function prepare(): void {
  letter(0x2d, 1) // -
  letter(0x2b, 2) // +
  letter(0x30, 3) // 0
  for (let code = 0x31; code <= 0x39; code++) letter(code, 4)
  letter(0x2e, 5) // .
  letter(0x65, 6) // e
  letter(0x45, 7) // E
  letter(0x74, 8) // t
  letter(0x72, 9) // r
  letter(0x75, 10) // u
  letter(0x66, 11) // f
  letter(0x61, 12) // a
  letter(0x6c, 13) // l
  letter(0x73, 14) // s
  letter(0x6e, 15) // n
  // Numbers: 2 minus, 3 zero, 4 integer, 5 point, 6 fraction, 7 exponent, 8 its sign, 9 its digits.
  step(1, 1, 2)
  step(1, 3, 3)
  step(1, 4, 4)
  step(2, 3, 3)
  step(2, 4, 4)
  digits(4, 4)
  for (let from = 3; from <= 4; from++) {
    step(from, 5, 5)
    step(from, 6, 7)
    step(from, 7, 7)
  }
  digits(5, 6)
  digits(6, 6)
  step(6, 6, 7)
  step(6, 7, 7)
  step(7, 1, 8)
  step(7, 2, 8)
  digits(7, 9)
  digits(8, 9)
  digits(9, 9)
  // Words; 13 is the end of each.
  step(1, 8, 10)
  step(10, 9, 11)
  step(11, 10, 12)
  step(12, 6, 13)
  step(1, 11, 14)
  step(14, 12, 15)
  step(15, 13, 16)
  step(16, 14, 17)
  step(17, 6, 13)
  step(1, 15, 18)
  step(18, 10, 19)
  step(19, 13, 20)
  step(20, 13, 13)
}

/** One bit per byte of four vectors that is not zero in its highest bit. */
// @ts-ignore: decorator
@inline
function bits(a: v128, b: v128, c: v128, d: v128): u64 {
  return (
    (i8x16.bitmask(a) as u64) |
    ((i8x16.bitmask(b) as u64) << 16) |
    ((i8x16.bitmask(c) as u64) << 32) |
    ((i8x16.bitmask(d) as u64) << 48)
  )
}

// @ts-ignore: decorator
@inline
function equal(a: v128, b: v128, c: v128, d: v128, byte: u8): u64 {
  const all = i8x16.splat(byte)
  return bits(i8x16.eq(a, all), i8x16.eq(b, all), i8x16.eq(c, all), i8x16.eq(d, all))
}

/** Each bit becomes the parity of itself and all lower ones. */
// @ts-ignore: decorator
@inline
function parity(mask: u64): u64 {
  mask ^= mask << 1
  mask ^= mask << 2
  mask ^= mask << 4
  mask ^= mask << 8
  mask ^= mask << 16
  mask ^= mask << 32
  return mask
}

const ODD: u64 = 0xaaaaaaaaaaaaaaaa

/** Which backslashes escape the next byte, of a block into which `escaped` reaches. */
// @ts-ignore: decorator
@inline
function escapes(backslashes: u64, escaped: u64): u64 {
  const first = backslashes & ~escaped
  return ((((first << 1) | ODD) - first) ^ ODD) & backslashes
}

// @ts-ignore: decorator
@inline
function isEscape(v: v128): v128 {
  // By both halves of the byte: " / in 2, \ in 5, b f n in 6, r t u in 7.
  const low = i8x16(0, 0, 13, 0, 8, 8, 4, 0, 0, 0, 0, 0, 2, 0, 4, 1)
  const high = i8x16(0, 0, 1, 0, 0, 2, 4, 8, 0, 0, 0, 0, 0, 0, 0, 0)
  const both = v128.and(
    i8x16.swizzle(low, v128.and(v, i8x16.splat(15))),
    i8x16.swizzle(high, i8x16.shr_u(v, 4)),
  )
  return i8x16.ne(both, i8x16.splat(0))
}

// @ts-ignore: decorator
@inline
function isAtMost(v: v128, byte: u8): v128 {
  // The comparison "less than" takes twice as many instructions.
  return i8x16.eq(i8x16.min_u(v, i8x16.splat(byte)), v)
}

// @ts-ignore: decorator
@inline
function isDigit(v: v128): v128 {
  return isAtMost(i8x16.sub(v, i8x16.splat(0x30)), 9)
}

// @ts-ignore: decorator
@inline
function isHex(v: v128): v128 {
  const lower = v128.or(v, i8x16.splat(0x20))
  return v128.or(isDigit(v), isAtMost(i8x16.sub(lower, i8x16.splat(0x61)), 5))
}

/**
 * Whether the `size` bytes at `place`, at most 63, are an integer, a decimal fraction or a word: nearly all scalars are, and the automaton takes a few
 * ns for each of their bytes. `digits`: which of the bytes are digits. False: they may still be a number.
 */
// @ts-ignore: decorator
@inline
function isCommonScalar(place: usize, size: i32, digits: u64): bool {
  const first = load<u8>(place)
  const others = ~digits & (((1 as u64) << size) - 1)
  if (others === 0) return first !== 0x30 || size === 1
  if ((digits & 1) !== 0) {
    // One point, between digits.
    const point = ctz(others) as i32
    return (
      (others & (others - 1)) === 0 &&
      load<u8>(place + (point as usize)) === 0x2e &&
      point + 1 < size &&
      (first !== 0x30 || point === 1)
    )
  }
  if (size === 4) {
    const word = load<u32>(place)
    return word === 0x65757274 || word === 0x6c6c756e // true, null
  }
  return size === 5 && first === 0x66 && load<u32>(place, 1) === 0x65736c61 // false
}

/**
 * Whether the scalars that stand entirely in a block are integers, decimal fractions and words, all of them looked at together: `scalars`, their
 * bytes. False: they may still be numbers.
 */
// @ts-ignore: decorator
@inline
function areCommonScalars(a: v128, b: v128, c: v128, d: v128, at: usize, scalars: u64, digits: u64): bool {
  const own = digits & scalars
  const starts = scalars & ~(scalars << 1)
  const others = scalars & ~own
  let first = starts & own
  if (others !== 0) {
    let words = starts & others
    let points = others
    if (words !== 0) {
      const minus = words & equal(a, b, c, d, 0x2d)
      words ^= minus
      if (((minus << 1) & ~own) !== 0) return false
      first |= minus << 1
      // An addition at the beginning of a run of bits carries to its end.
      points = others & (scalars + words) & ~minus
      let isWrong: i32 = 0
      while (words !== 0) {
        const index = ctz(words)
        words &= words - 1
        const place = at + (index as usize)
        const word = load<u32>(place)
        const run = scalars >> index
        // true, null, false: without branches, since which it is depends on nothing.
        const isShort = (((word === 0x65757274) as i32) | ((word === 0x6c6c756e) as i32)) & (((run & 31) === 15) as i32)
        const isFalse = ((word === 0x736c6166) as i32) & ((load<u8>(place, 4) === 0x65) as i32) & (((run & 63) === 31) as i32)
        isWrong |= (isShort | isFalse) ^ 1
      }
      if (isWrong !== 0) return false
    }
    // One point, between digits.
    if (points !== 0) {
      const behind = (first + own) & ~own
      if ((points & ~(behind & equal(a, b, c, d, 0x2e))) !== 0 || ((points << 1) & ~own) !== 0) return false
    }
  }
  const long = first & (own >> 1)
  return long === 0 || (long & equal(a, b, c, d, 0x30)) === 0
}

/** The first bytes that are not white space, from each of `places` on. */
// @ts-ignore: decorator
@inline
function behindSpace(places: u64, spaces: u64): u64 {
  return spaces === 0 ? places : ((places & spaces) + spaces | places) & ~spaces
}

// @ts-ignore: decorator
@inline
function bitIf(condition: bool): u64 {
  return select<u64>(1, 0, condition)
}

/** Bytes of strings that JSON does not allow. Moves `HEX_LEFT` on. */
function faults(a: v128, b: v128, c: v128, d: v128, escaped: u64, inside: u64, size: u64): u64 {
  let found = bits(isAtMost(a, 0x1f), isAtMost(b, 0x1f), isAtMost(c, 0x1f), isAtMost(d, 0x1f)) & inside
  const meant = escaped & inside
  const left = load<u32>(HEX_LEFT) as u64
  if ((meant | left) !== 0) {
    found |= meant & ~bits(isEscape(a), isEscape(b), isEscape(c), isEscape(d))
    const u = meant & equal(a, b, c, d, 0x75)
    if ((u | left) !== 0) {
      const due = (u << 1) | (u << 2) | (u << 3) | (u << 4) | left
      const over = (u >> 63) | (u >> 62) | (u >> 61) | (u >> 60)
      const valid: u64 = size === 64 ? ~0 : ((1 as u64) << size) - 1
      found |= due & valid & ~bits(isHex(a), isHex(b), isHex(c), isHex(d))
      store<u32>(HEX_LEFT, (size === 64 ? over : (due >> size) | (size > 60 ? over << (64 - size) : 0)) as u32)
    }
  }
  return found
}

/** Skips what is left of a string in the first `length` bytes of the window. Returns the offset behind its closing quote, `MORE` or `DOUBT`. */
export function skipString(length: i32): i32 {
  const isChecked = load<i32>(CHECKS) === CHECK_ALL
  let reached = load<i32>(ESCAPED) as u64
  let seen = 0
  const end = WINDOW + length
  for (let at = WINDOW; at < end; at += 64) {
    const a = v128.load(at)
    const b = v128.load(at, 16)
    const c = v128.load(at, 32)
    const d = v128.load(at, 48)
    let quotes = equal(a, b, c, d, 0x22)
    let backslashes = equal(a, b, c, d, 0x5c)
    const size = min<u64>(end - at, 64)
    if (size < 64) {
      const valid = ((1 as u64) << size) - 1
      quotes &= valid
      backslashes &= valid
    }
    seen += popcnt(quotes) as i32
    const marks = escapes(backslashes, reached)
    const escaped = (marks << 1) | reached
    quotes &= ~escaped
    if (isChecked) {
      const valid: u64 = size === 64 ? ~0 : ((1 as u64) << size) - 1
      // Below the closing quote, or all.
      const inside = (quotes === 0 ? ~0 : (quotes & (0 - quotes)) - 1) & valid
      const due = faults(a, b, c, d, escaped, inside, size)
      // Hexadecimal digits that are due beyond the closing quote fail at the quote.
      if ((due & (inside | (quotes & (0 - quotes)))) !== 0) return DOUBT
    }
    if (quotes !== 0) return (at - WINDOW + (ctz(quotes) as usize) + 1) as i32
    reached = marks >> (size - 1)
  }
  store<i32>(ESCAPED, reached as i32)
  store<i32>(QUOTES, seen)
  return MORE
}

/** Skips what is left of an object or array in the first `length` bytes of the window. Returns the offset behind it, `MORE` or `DOUBT`. */
export function skipValue(length: i32): i32 {
  const checks = load<i32>(CHECKS)
  const maxDepth = min<i32>(load<i32>(MAX_DEPTH), MAX_LEVELS - 1)
  const maxValues = load<i32>(MAX_VALUES)
  const maxKeys = load<i32>(MAX_KEYS)
  let inString = 0 - (load<i32>(IN_STRING) as u64)
  let reached = load<i32>(ESCAPED) as u64
  let scalar = load<i32>(SCALAR)
  let expected = load<i32>(EXPECTED)
  let depth = load<i32>(DEPTH)
  let values = load<i32>(VALUES)
  let beginning = load<i32>(BEGINNING)
  // The word of the innermost open bracket; those around it are on the stack.
  let top = load<u32>(STACK + ((depth as usize) << 2))
  const end = WINDOW + length
  for (let at = WINDOW; at < end; at += 64) {
    const a = v128.load(at)
    const b = v128.load(at, 16)
    const c = v128.load(at, 32)
    const d = v128.load(at, 48)
    const size = min<u64>(end - at, 64)
    const valid: u64 = size === 64 ? ~0 : ((1 as u64) << size) - 1
    const backslashes = equal(a, b, c, d, 0x5c) & valid
    const marks = escapes(backslashes, reached)
    const escaped = (marks << 1) | reached
    reached = marks >> (size - 1)
    const quotes = equal(a, b, c, d, 0x22) & valid & ~escaped
    // From an opening quote to before its closing one.
    const strings = parity(quotes) ^ inString
    if (checks === CHECK_ALL || (checks === CHECK_BEGINNING && (beginning > 0 || quotes !== 0))) {
      let wrong = faults(a, b, c, d, escaped, strings & valid, size)
      // On lenient input the plain scanner looks at no more than the beginning of a string.
      if (checks === CHECK_BEGINNING && inString !== 0 && beginning <= 0) wrong &= ~((quotes & (0 - quotes)) - 1)
      if (wrong !== 0) return DOUBT
    }
    if ((quotes | ~strings) === 0) {
      beginning -= size as i32
      continue
    }
    const entered = inString
    inString = (((strings << (64 - size)) as i64) >> 63) as u64
    beginning = quotes === 0 ? beginning - (size as i32) : BEGINNING_BYTES

    const outside = ~(strings | quotes) & valid
    const comma = equal(a, b, c, d, 0x2c) & outside
    const colon = equal(a, b, c, d, 0x3a) & outside
    // All brackets and braces, and Y, y, _ and 0x7f: as tokens they are nothing.
    const bracketBits = i8x16.splat(0x26)
    const sign = comma | colon | (equal(v128.or(a, bracketBits), v128.or(b, bracketBits), v128.or(c, bracketBits), v128.or(d, bracketBits), 0x7f) & outside)
    let space = bits(isAtMost(a, 0x20), isAtMost(b, 0x20), isAtMost(c, 0x20), isAtMost(d, 0x20)) & outside
    if (space !== 0)
      space &= equal(a, b, c, d, 0x20) | equal(a, b, c, d, 0x0a) | equal(a, b, c, d, 0x0d) | equal(a, b, c, d, 0x09)
    const scalars = outside & ~(space | sign)
    const digits: u64 = scalars === 0 ? 0 : bits(isDigit(a), isDigit(b), isDigit(c), isDigit(d))
    const before: u64 = scalar !== 0 ? 1 : 0
    if (scalar !== 0) {
      // A scalar that began in the block before.
      const run = min<u64>(ctz(~scalars), size) as i32
      for (let index = 0; index < run; index++)
        scalar = load<u8>(SCALARS + (scalar << 4) + load<u8>(LETTERS + load<u8>(at + index)))
      if (scalar === 0) return DOUBT
      if ((run as u64) < size) {
        if (((SCALAR_ENDS >> scalar) & 1) === 0) return DOUBT
        scalar = 0
      }
    }
    const beginnings = scalars & ~((scalars << 1) | before)
    const opening = quotes & strings
    let tokens = sign | beginnings | opening
    if (size === 64 && expected !== ANY_VALUE) {
      // All tokens of the block at once, by what stands before each. Only brackets are taken one by one.
      let left = scalars & (scalars + before)
      let unfinished = scalar
      if (((left >> 63) as i32) !== 0) {
        const from = (64 - clz(~left)) as i32
        unfinished = SCALAR_BEGIN
        for (let index = from; index < 64; index++)
          unfinished = load<u8>(SCALARS + (unfinished << 4) + load<u8>(LETTERS + load<u8>(at + (index as usize))))
        // Whether it is wrong depends on where the value ends.
        left = unfinished === 0 ? ~0 : left & (((1 as u64) << from) - 1)
      }
      if (left === 0 || (left !== ~0 && areCommonScalars(a, b, c, d, at, left, digits))) {
        const signs = sign & ~(comma | colon)
        const behindColon = behindSpace((colon << 1) | bitIf(expected === OBJECT_VALUE), space)
        const behindComma = behindSpace((comma << 1) | bitIf(expected === KEY || expected === ARRAY_VALUE), space)
        // Strings that are keys, if they stand in an object.
        const named = opening & ~behindColon
        // All bits, where the innermost bracket is an object's.
        let inside = 0 - ((top >>> 31) as u64)
        // The same for the place of each byte.
        let objects = inside
        let open: u64 = 0
        let passed: u64 = 0
        // The bytes of the value.
        let within: u64 = ~0
        let brackets = signs
        while (brackets !== 0) {
          const bit = brackets & (0 - brackets)
          const byte = load<u8>(at + (ctz(brackets) as usize))
          brackets ^= bit
          top += popcnt(named & inside & (bit - 1) & ~passed) as u32
          if (((top & ~OBJECT) as i32) > maxKeys) return DOUBT
          passed = bit | (bit - 1)
          if ((byte | BRACE_BIT) === OPEN_BRACE) {
            open |= bit
            store<u32>(STACK + ((depth as usize) << 2), top)
            if (++depth > maxDepth) return DOUBT
            top = byte === OPEN_BRACE ? OBJECT : 0
          } else {
            if (byte !== (inside !== 0 ? CLOSE_BRACE : CLOSE_BRACKET)) return DOUBT
            if (--depth === 0) {
              within = passed
              break
            }
            top = load<u32>(STACK + ((depth as usize) << 2))
          }
          inside = 0 - ((top >>> 31) as u64)
          objects = (objects & passed) | (inside & ~passed)
        }
        top += popcnt(named & inside & ~passed & within) as u32
        if (((top & ~OBJECT) as i32) > maxKeys) return DOUBT
        const keys = named & objects
        const behindOpen = behindSpace((open << 1) | bitIf(expected === FIRST_KEY || expected === FIRST_ELEMENT), space)
        const isNamed = expected === COLON
        const keyEnds = ((keys | bitIf(isNamed && entered !== 0)) + strings) & ~strings
        const behindKey = behindSpace((keyEnds << 1) | bitIf(isNamed && entered === 0), space)
        const others = beginnings | open
        const wrong =
          ((others | opening) & ~(behindComma | behindColon | behindOpen)) |
          ((signs ^ open) & (behindComma | behindColon)) |
          (comma & (behindComma | behindColon | behindOpen)) |
          (others & (behindComma | behindOpen) & objects) |
          ((tokens & behindKey) ^ colon)
        if ((wrong & within) !== 0) return DOUBT
        values += popcnt((others | opening) & ~keys & within) as i32
        if (values > maxValues) return DOUBT
        if (depth === 0) {
          store<i32>(VALUES, values)
          return (at - WINDOW + 64 - (clz(within) as usize)) as i32
        }
        scalar = unfinished
        if (tokens !== 0) {
          const last = (1 as u64) << (63 - clz(tokens))
          const isObject = inside !== 0
          expected = select(OBJECT_NEXT, ARRAY_NEXT, isObject)
          expected = select(COLON, expected, (keys & last) !== 0)
          expected = select(OBJECT_VALUE, expected, (colon & last) !== 0)
          expected = select(select(KEY, ARRAY_VALUE, isObject), expected, (comma & last) !== 0)
          expected = select(select(FIRST_KEY, FIRST_ELEMENT, isObject), expected, (open & last) !== 0)
        }
        continue
      }
    }
    // Comparisons, not a table: what is expected next is guessed by the processor, while look-ups would wait for each other.
    while (tokens !== 0) {
      const index = ctz(tokens)
      tokens &= tokens - 1
      const byte = load<u8>(at + (index as usize))
      if (byte === QUOTE && (expected === KEY || expected === FIRST_KEY)) {
        if (((++top & ~OBJECT) as i32) > maxKeys) return DOUBT
        expected = COLON
      } else if (byte === COLON_SIGN) {
        if (expected !== COLON) return DOUBT
        expected = OBJECT_VALUE
      } else if (byte === COMMA) {
        if (expected === OBJECT_NEXT) expected = KEY
        else if (expected === ARRAY_NEXT) expected = ARRAY_VALUE
        else return DOUBT
      } else if ((byte | BRACE_BIT) === CLOSE_BRACE) {
        if (byte === CLOSE_BRACE ? expected !== FIRST_KEY && expected !== OBJECT_NEXT : expected !== FIRST_ELEMENT && expected !== ARRAY_NEXT)
          return DOUBT
        if (--depth === 0) {
          store<i32>(VALUES, values)
          return (at - WINDOW + (index as usize) + 1) as i32
        }
        top = load<u32>(STACK + ((depth as usize) << 2))
        expected = (top & OBJECT) !== 0 ? OBJECT_NEXT : ARRAY_NEXT
      } else {
        if (++values > maxValues) return DOUBT
        if ((byte | BRACE_BIT) === OPEN_BRACE) {
          if (expected > FIRST_ELEMENT) return DOUBT
          store<u32>(STACK + ((depth as usize) << 2), top)
          if (++depth > maxDepth) return DOUBT
          top = byte === OPEN_BRACE ? OBJECT : 0
          expected = byte === OPEN_BRACE ? FIRST_KEY : FIRST_ELEMENT
          continue
        }
        if (expected === OBJECT_VALUE) expected = OBJECT_NEXT
        else if (expected === ARRAY_VALUE || expected === FIRST_ELEMENT) expected = ARRAY_NEXT
        else return DOUBT
        if (byte === QUOTE) continue
        const run = min<u64>(ctz(~(scalars >> index)), size - index) as i32
        if (run === 0) return DOUBT
        if ((run as u64) + index < size && isCommonScalar(at + (index as usize), run, digits >> index)) continue
        let state = load<u8>(SCALARS + (SCALAR_BEGIN << 4) + load<u8>(LETTERS + byte)) as i32
        for (let more = 1; more < run; more++)
          state = load<u8>(SCALARS + (state << 4) + load<u8>(LETTERS + load<u8>(at + (index as usize) + more)))
        if (state === 0) return DOUBT
        if ((run as u64) + index === size) scalar = state
        else if (((SCALAR_ENDS >> state) & 1) === 0) return DOUBT
      }
    }
  }
  store<u32>(STACK + ((depth as usize) << 2), top)
  store<i32>(IN_STRING, (inString & 1) as i32)
  store<i32>(ESCAPED, reached as i32)
  store<i32>(SCALAR, scalar)
  store<i32>(EXPECTED, expected)
  store<i32>(DEPTH, depth)
  store<i32>(VALUES, values)
  store<i32>(BEGINNING, max<i32>(beginning, 0))
  return MORE
}
