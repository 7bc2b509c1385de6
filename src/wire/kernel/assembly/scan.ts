/**
 * The scan kernel: JSON in blocks of 64 bytes with 128-bit SIMD. AssemblyScript, compiled by `npm run kernel` to `../binary.ts`.
 *
 * It finds the end of a string, an object or an array, over any number of windows, and counts depth, values and keys. The bytes that are
 * escaped or inside a string are computed for a whole block without a branch, as in simdjson (Langdale and Lemire, "Parsing Gigabytes of
 * JSON per Second", 2019). Bytes outside strings are also checked per block: each token by the token before it, numbers and words by their
 * digits, points and letters. Brackets that open and close in turns are checked in pairs, others one by one.
 *
 * A number or word that reaches the end of a block is checked with the next block, which begins at its first byte. At the end of a window
 * it is read byte by byte by an automaton, which continues in the next window.
 *
 * The surprise: it reports no errors. For invalid JSON or an exceeded limit it returns `DOUBT`. The plain scanner then reads the value again
 * and makes the error. So the kernel may return `DOUBT` for valid bytes, but must never accept invalid ones.
 *
 * Gain: 10 KB of dense results cost 1.07 × raw in place of 1.67, 1 MB 0.65 in place of 2.69 (bench/notes.md).
 */

/** Results of `skipString` and `skipValue` beside an offset. */
const MORE: i32 = -1
const DOUBT: i32 = -2

/** Values of `CHECKS`: how much of each string is checked. 0: nothing. */
const CHECK_BEGINNING: i32 = 1
const CHECK_ALL: i32 = 2
/** At least this many bytes are the beginning of a string. The plain scanner checks fewer on lenient input. */
const BEGINNING_BYTES: i32 = 64

// Memory: tables, the state, which outlives a window, the open brackets, the window. The compiler places the tables; `prepare` checks their end.
const STATE: usize = 3072
const IN_STRING: usize = STATE
const ESCAPED: usize = STATE + 4
const HEX_LEFT: usize = STATE + 8
const SCALAR: usize = STATE + 12
const PLACE: usize = STATE + 16
const DEPTH: usize = STATE + 20
const VALUES: usize = STATE + 24
const QUOTES: usize = STATE + 28
const BEGINNING: usize = STATE + 32
const MAX_DEPTH: usize = STATE + 36
const MAX_VALUES: usize = STATE + 40
const MAX_KEYS: usize = STATE + 44
const CHECKS: usize = STATE + 48
/** One word per level: the highest bit marks an object, the other bits count its keys. The innermost word is stored only between windows. */
const STACK: usize = 4096
const MAX_LEVELS: i32 = 4096
const OBJECT: u32 = 0x80000000
/** After the window (64 KiB) come 64 bytes of white space, and bytes that are read but not used. */
const WINDOW: usize = 4096 + 4 * 4096

// Bits of `PLACE`: the token before the next one. At the end of a value no bit is set.
const AFTER_COMMA: i32 = 1
/** Also set before the first value. */
const AFTER_COLON: i32 = 2
const AFTER_OPEN: i32 = 4
const AFTER_KEY: i32 = 8
/** The open string is a key. */
const IN_KEY: i32 = 16

/** The class of a byte in a number or a word; 0: none. */
const LETTERS = memory.data(256)
/**
 * Words by bits 3 and 4 of their first byte (f 0, n 1, t 2), four numbers each: the word, a mask of its bytes, a mask of the bits that tell its
 * length and of the one behind, those of them that are set.
 */
const WORDS = memory.data<u64>([
  0x65736c6166, 0xffffffffff, 63, 31,
  0x6c6c756e, 0xffffffff, 31, 15,
  0x65757274, 0xffffffff, 31, 15,
  0, 0xffffffffffffffff, 0, 0,
])
/** Bytes to compare with, 16 times each. V8 builds a constant in the code again for each comparison, in three instructions. */
const BYTES = memory.data(16 * 19)
const QUOTE: usize = 0
const BACKSLASH: usize = 1
const COMMA: usize = 2
const COLON: usize = 3
const SPACE: usize = 4
const OPEN_BRACE: usize = 5
const CLOSE_BRACE: usize = 6
const DIGIT_SHIFT: usize = 7
const DIGIT_END: usize = 8
const ZERO: usize = 9
const POINT: usize = 10
const MINUS: usize = 11
const LAST_CONTROL: usize = 12
const LOW_HALF: usize = 13
const LETTER_E: usize = 14
const PLUS: usize = 15
const LETTER_U: usize = 16
const LETTER_A: usize = 17
const FIVE: usize = 18
/** White space by its lower half. */
const SPACES = memory.data<u8>([0x20, 0, 0, 0, 0, 0, 0, 0, 0, 9, 10, 0, 0, 13, 0, 0])
/** Most of what stands behind a backslash by its lower half: r t f n /. */
const COMMON_ESCAPES = memory.data<u8>([1, 0, 0x72, 0, 0x74, 0, 0x66, 0, 0, 0, 0, 0, 0, 0, 0x6e, 0x2f])
/** All of it by both halves of the byte: " / in 2, \ in 5, b f n in 6, r t u in 7. */
const ESCAPES = memory.data<u8>([0, 0, 13, 0, 8, 8, 4, 0, 0, 0, 0, 0, 2, 0, 4, 1, 0, 0, 1, 0, 0, 2, 4, 8, 0, 0, 0, 0, 0, 0, 0, 0])
/** 21 states of 16 letters. */
const SCALARS_BYTES: i32 = 21 * 16
/** The automaton of numbers, `true`, `false` and `null`: 16 letters to a state, 0 is an error. */
const SCALARS = memory.data(SCALARS_BYTES)
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

function bytes(index: usize, byte: i32): void {
  v128.store(BYTES + (index << 4), i8x16.splat(byte as i8))
}

/** Fills the tables. Called once. */
export function prepare(): void {
  // Checked by the compiler: the last table ends before the state.
  if (SCALARS + SCALARS_BYTES > STATE) ERROR('the tables overlap the state')
  bytes(QUOTE, 0x22)
  bytes(BACKSLASH, 0x5c)
  bytes(COMMA, 0x2c)
  bytes(COLON, 0x3a)
  bytes(SPACE, 0x20)
  bytes(OPEN_BRACE, 0x7b)
  bytes(CLOSE_BRACE, 0x7d)
  bytes(DIGIT_SHIFT, 0x50)
  bytes(DIGIT_END, 0x8a)
  bytes(ZERO, 0x30)
  bytes(POINT, 0x2e)
  bytes(MINUS, 0x2d)
  bytes(LAST_CONTROL, 0x1f)
  bytes(LOW_HALF, 0x0f)
  bytes(LETTER_E, 0x65)
  bytes(PLUS, 0x2b)
  bytes(LETTER_U, 0x75)
  bytes(LETTER_A, 0x61)
  bytes(FIVE, 5)
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

/** One bit per byte of four vectors: its highest. */
// @ts-ignore: decorator
@inline
function bits(a: v128, b: v128, c: v128, d: v128): u64 {
  return (
    (i8x16.bitmask(a) as u32 as u64) |
    ((i8x16.bitmask(b) as u32 as u64) << 16) |
    ((i8x16.bitmask(c) as u32 as u64) << 32) |
    ((i8x16.bitmask(d) as u64) << 48)
  )
}

/** 16 times the byte at `index` of `BYTES`. */
// @ts-ignore: decorator
@inline
function all(index: usize): v128 {
  return v128.load(BYTES + (index << 4))
}

// @ts-ignore: decorator
@inline
function equal(a: v128, b: v128, c: v128, d: v128, byte: v128): u64 {
  return bits(i8x16.eq(a, byte), i8x16.eq(b, byte), i8x16.eq(c, byte), i8x16.eq(d, byte))
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
  const both = v128.and(
    i8x16.swizzle(v128.load(ESCAPES), v128.and(v, all(LOW_HALF))),
    i8x16.swizzle(v128.load(ESCAPES, 16), i8x16.shr_u(v, 4)),
  )
  return i8x16.ne(both, i8x16.splat(0))
}

// @ts-ignore: decorator
@inline
function isAtMost(v: v128, most: v128): v128 {
  // The comparison "less than" takes twice as many instructions.
  return i8x16.eq(i8x16.min_u(v, most), v)
}

/** Whether a byte is the one that `table` has for its lower half. */
// @ts-ignore: decorator
@inline
function isOf(table: v128, v: v128): v128 {
  return i8x16.eq(v, i8x16.swizzle(table, v128.and(v, all(LOW_HALF))))
}

/** `escaped` without the bytes that are a quote or a backslash (`plain`), or any of / f n r t. */
// @ts-ignore: decorator
@inline
function rareEscapes(a: v128, b: v128, c: v128, d: v128, escaped: u64, plain: u64): u64 {
  const left = escaped & ~plain
  if (left === 0) return 0
  const table = v128.load(COMMON_ESCAPES)
  return left & ~bits(isOf(table, a), isOf(table, b), isOf(table, c), isOf(table, d))
}

// @ts-ignore: decorator
@inline
function isDigit(v: v128): v128 {
  return i8x16.gt_s(all(DIGIT_END), i8x16.add(v, all(DIGIT_SHIFT)))
}

// @ts-ignore: decorator
@inline
function isHex(v: v128): v128 {
  const lower = v128.or(v, all(SPACE))
  return v128.or(isDigit(v), isAtMost(i8x16.sub(lower, all(LETTER_A)), all(FIVE)))
}

/** 0: the run of bytes of `scalars` that begins at `index` is a word. */
// @ts-ignore: decorator
@inline
function wordFaults(at: usize, scalars: u64, index: u64): u64 {
  const word = load<u64>(at + (index as usize))
  const row = WORDS + (((word as usize) & 0x18) << 2)
  return ((word ^ load<u64>(row)) & load<u64>(row, 8)) | (((scalars >> index) & load<u64>(row, 16)) ^ load<u64>(row, 24))
}

/** Whether all scalars are numbers or words, checked together. `scalars`: their bytes; each run of them ends in the block. */
// @ts-ignore: decorator
@inline
function areScalars(a: v128, b: v128, c: v128, d: v128, at: usize, scalars: u64): bool {
  const own = bits(isDigit(a), isDigit(b), isDigit(c), isDigit(d)) & scalars
  const starts = scalars & ~(scalars << 1)
  const others = scalars ^ own
  let first = starts & own
  if (others !== 0) {
    let words = starts & others
    let rest = others
    if (words !== 0) {
      // Most blocks have at most two words and no minus.
      const low = ctz(words)
      const high = 63 - clz(words)
      const between = words & (words - 1) & ~((1 as u64) << high)
      if ((wordFaults(at, scalars, low) | wordFaults(at, scalars, high) | between) !== 0) {
        const minus = words & equal(a, b, c, d, all(MINUS))
        if (((minus << 1) & ~own) !== 0) return false
        words ^= minus
        first |= minus << 1
        rest ^= minus
        let wrong: u64 = 0
        for (let left = words; left !== 0; left &= left - 1) wrong |= wordFaults(at, scalars, ctz(left))
        if (wrong !== 0) return false
      }
      // An addition at the beginning of a run of bits carries to its end.
      rest &= scalars + words
    }
    if (rest !== 0) {
      const behind = (first + own) & ~own
      const points = rest & behind & equal(a, b, c, d, all(POINT))
      if (((points << 1) & ~own) !== 0) return false
      const exponents = rest ^ points
      if (exponents !== 0) {
        const letters = exponents & equal(v128.or(a, all(SPACE)), v128.or(b, all(SPACE)), v128.or(c, all(SPACE)), v128.or(d, all(SPACE)), all(LETTER_E))
        const signs = exponents ^ letters
        const fractions = ((points << 1) + own) & ~own
        if (
          ((letters & ~(behind | fractions)) |
            (signs & ~((letters << 1) & (equal(a, b, c, d, all(MINUS)) | equal(a, b, c, d, all(PLUS))))) |
            (((letters << 1) & ~signs) & ~own) |
            ((signs << 1) & ~own)) !==
          0
        )
          return false
      }
    }
  }
  const long = first & (own >> 1)
  return long === 0 || (long & equal(a, b, c, d, all(ZERO))) === 0
}

/** The first bytes that are not white space, from each of `places` on. */
// @ts-ignore: decorator
@inline
function behindSpace(places: u64, spaces: u64): u64 {
  return ((places & spaces) + spaces | places) & ~spaces
}

// @ts-ignore: decorator
@inline
function bitIf(condition: bool): u64 {
  return select<u64>(1, 0, condition)
}

/** All bits or none. */
// @ts-ignore: decorator
@inline
function maskOf(word: u32): u64 {
  return 0 - ((word >>> 31) as u64)
}

/** The state of the automaton after `length` bytes. */
function afterScalar(state: i32, at: usize, length: i32): i32 {
  for (let index = 0; index < length; index++)
    state = load<u8>(SCALARS + (state << 4) + load<u8>(LETTERS + load<u8>(at + index)))
  return state
}

/** Bytes of strings that JSON does not allow. Moves `HEX_LEFT` on. */
function faults(at: usize, escaped: u64, inside: u64, size: u64): u64 {
  const a = v128.load(at)
  const b = v128.load(at, 16)
  const c = v128.load(at, 32)
  const d = v128.load(at, 48)
  let found = bits(isAtMost(a, all(LAST_CONTROL)), isAtMost(b, all(LAST_CONTROL)), isAtMost(c, all(LAST_CONTROL)), isAtMost(d, all(LAST_CONTROL))) & inside
  const meant = escaped & inside
  const left = load<u32>(HEX_LEFT) as u64
  if ((meant | left) !== 0) {
    found |= meant & ~bits(isEscape(a), isEscape(b), isEscape(c), isEscape(d))
    const u = meant & equal(a, b, c, d, all(LETTER_U))
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
    let quotes = equal(a, b, c, d, all(QUOTE))
    let backslashes = equal(a, b, c, d, all(BACKSLASH))
    const size = min<u64>(end - at, 64)
    if (size < 64) {
      const valid = ((1 as u64) << size) - 1
      quotes &= valid
      backslashes &= valid
    }
    seen += popcnt(quotes) as i32
    const marks = escapes(backslashes, reached)
    const escaped = (marks << 1) | reached
    const plain = quotes | backslashes
    quotes &= ~escaped
    if (isChecked) {
      const valid: u64 = size === 64 ? ~0 : ((1 as u64) << size) - 1
      // Below the closing quote, or all.
      const inside = (quotes === 0 ? ~0 : (quotes & (0 - quotes)) - 1) & valid
      if (
        rareEscapes(a, b, c, d, escaped & inside, plain) !== 0 || load<u32>(HEX_LEFT) !== 0 ||
        v128.any_true(isAtMost(i8x16.min_u(i8x16.min_u(a, b), i8x16.min_u(c, d)), all(LAST_CONTROL)))
      ) {
        const due = faults(at, escaped, inside, size)
        // Hexadecimal digits that are due beyond the closing quote fail at the quote.
        if ((due & (inside | (quotes & (0 - quotes)))) !== 0) return DOUBT
      }
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
  let depth = load<i32>(DEPTH)
  let values = load<i32>(VALUES)
  let beginning = load<i32>(BEGINNING)
  const place = load<i32>(PLACE)
  let afterComma = bitIf((place & AFTER_COMMA) !== 0)
  let afterColon = bitIf((place & AFTER_COLON) !== 0)
  let afterOpen = bitIf((place & AFTER_OPEN) !== 0)
  let afterKey = bitIf((place & AFTER_KEY) !== 0)
  let inKey = bitIf((place & IN_KEY) !== 0)
  let before = bitIf(scalar !== 0)
  // The word of the innermost open bracket; those around it are on the stack.
  let top = load<u32>(STACK + ((depth as usize) << 2))
  const end = WINDOW + length
  // White space behind the window, so that the last block is like the others.
  const blank = all(SPACE)
  v128.store(end, blank)
  v128.store(end, blank, 16)
  v128.store(end, blank, 32)
  v128.store(end, blank, 48)
  if (depth === 0) {
    const byte = load<u8>(WINDOW) | 0x20
    if (byte !== 0x7b) return DOUBT
  }
  let marks: u64 = 0
  let at = WINDOW
  let next = at
  while (next < end) {
    at = next
    const a = v128.load(at)
    const b = v128.load(at, 16)
    const c = v128.load(at, 32)
    const d = v128.load(at, 48)
    let quotes = equal(a, b, c, d, all(QUOTE))
    let escaped = reached
    let plain = quotes
    marks = 0
    const back = all(BACKSLASH)
    const isBackA = i8x16.eq(a, back)
    const isBackB = i8x16.eq(b, back)
    const isBackC = i8x16.eq(c, back)
    const isBackD = i8x16.eq(d, back)
    if (v128.any_true(v128.or(v128.or(isBackA, isBackB), v128.or(isBackC, isBackD))) || reached !== 0) {
      const backslashes = bits(isBackA, isBackB, isBackC, isBackD)
      plain |= backslashes
      marks = escapes(backslashes, reached)
      escaped = (marks << 1) | reached
      quotes &= ~escaped
      reached = marks >> 63
    }
    // From an opening quote to before its closing one.
    const strings = parity(quotes) ^ inString
    const isAllString = (quotes | ~strings) === 0
    const isChecked = checks === CHECK_ALL || (checks === CHECK_BEGINNING && (beginning > 0 || quotes !== 0))
    if (isAllString && !isChecked) {
      beginning -= 64
      next = at + 64
      continue
    }
    const least = i8x16.min_u(i8x16.min_u(a, b), i8x16.min_u(c, d))
    const hasSpace = v128.any_true(isAtMost(least, all(SPACE)))
    if (isChecked) {
      if (rareEscapes(a, b, c, d, escaped & strings, plain) !== 0 || load<u32>(HEX_LEFT) !== 0 || (hasSpace && v128.any_true(isAtMost(least, all(LAST_CONTROL))))) {
        const size = min<u64>(end - at, 64)
        const valid: u64 = size === 64 ? ~0 : ((1 as u64) << size) - 1
        let wrong = faults(at, escaped, strings & valid, size)
        // On lenient input the plain scanner looks at no more than the beginning of a string.
        if (checks === CHECK_BEGINNING && inString !== 0 && beginning <= 0) wrong &= ~((quotes & (0 - quotes)) - 1)
        if (wrong !== 0) return DOUBT
      }
    }
    if (isAllString) {
      beginning -= 64
      next = at + 64
      continue
    }
    inString = ((strings as i64) >> 63) as u64
    beginning = quotes === 0 ? beginning - 64 : BEGINNING_BYTES

    const outside = ~(strings | quotes)
    const comma = equal(a, b, c, d, all(COMMA)) & outside
    const colon = equal(a, b, c, d, all(COLON)) & outside
    // A bracket and a brace differ in one bit.
    const lowerA = v128.or(a, all(SPACE))
    const lowerB = v128.or(b, all(SPACE))
    const lowerC = v128.or(c, all(SPACE))
    const lowerD = v128.or(d, all(SPACE))
    const open = equal(lowerA, lowerB, lowerC, lowerD, all(OPEN_BRACE)) & outside
    const close = equal(lowerA, lowerB, lowerC, lowerD, all(CLOSE_BRACE)) & outside
    const brackets = open | close
    let space: u64 = 0
    if (hasSpace) {
      const table = v128.load(SPACES)
      space = outside & bits(isOf(table, a), isOf(table, b), isOf(table, c), isOf(table, d))
    }
    const scalars = outside & ~(comma | colon | brackets | space)
    const opening = quotes & strings
    const beginnings = scalars & ~((scalars << 1) | before)

    let behindComma = (comma << 1) | afterComma
    let behindColon = (colon << 1) | afterColon
    let behindOpen = (open << 1) | afterOpen
    if (space !== 0) {
      behindComma = behindSpace(behindComma, space)
      behindColon = behindSpace(behindColon, space)
      behindOpen = behindSpace(behindOpen, space)
    }
    // Strings that are keys, if they stand in an object.
    const named = opening & ~behindColon
    let keys: u64
    // The bytes that stand in an object.
    let objects = maskOf(top)
    // The bytes of the value.
    let within: u64 = ~0
    let wrong: u64 = 0
    if (brackets === 0) {
      keys = named & objects
      top += popcnt(keys) as u32
      if (((top & ~OBJECT) as i32) > maxKeys) return DOUBT
    } else {
      const braces = bits(i16x8.shl(a, 2), i16x8.shl(b, 2), i16x8.shl(c, 2), i16x8.shl(d, 2))
      // The next bracket behind each that opens.
      const behind = behindSpace(open << 1, ~brackets)
      // The container of the first bytes ends.
      const leave = close & ~behind
      const isLeft = leave !== 0
      if (((behind & open) | (leave & (brackets - 1) & brackets)) === 0 && depth > (isLeft as i32) && maxKeys >= 64) {
        // Brackets open and close in turns: each pair holds no other bracket, before the pairs one may close, behind them one may open.
        const matched = close ^ leave
        // Bytes behind an opening bracket, up to its closing one.
        const inner = (matched - open) << 1
        const innerObjects = (matched & braces) - (open & braces)
        wrong = (innerObjects & matched) | (leave & (braces ^ objects))
        const place = STACK + ((depth as usize) << 2)
        const rest = select<u64>(0 - leave, ~0, isLeft)
        const container = select<u32>(load<u32>(place - 4), top, isLeft)
        objects = (innerObjects << 1) | (maskOf(container) & rest & ~inner) | (objects & ~rest)
        keys = named & objects
        const over = (top & ~OBJECT) + (popcnt(keys & ~rest) as u32)
        const counted = container + (popcnt(keys & rest & ~inner) as u32)
        if ((max<u32>(over, counted & ~OBJECT) as i32) > maxKeys) return DOUBT
        depth -= isLeft as i32
        if (depth + (bitIf(open !== 0) as i32) > maxDepth) return DOUBT
        store<u32>(STACK + ((depth as usize) << 2), counted)
        const last = (1 as u64) << (63 - clz(open))
        const isEntered = open > close
        const entered = (select<u32>(OBJECT, 0, (braces & last) !== 0)) + (popcnt(keys & (0 - last)) as u32)
        top = select<u32>(entered, counted, isEntered)
        depth += isEntered as i32
      } else {
        // All bits, where the innermost bracket is an object's.
        let inside = objects
        let passed: u64 = 0
        let left = brackets
        while (left !== 0) {
          const bit = left & (0 - left)
          left ^= bit
          top += popcnt(named & inside & (bit - 1) & ~passed) as u32
          if (((top & ~OBJECT) as i32) > maxKeys) return DOUBT
          passed = bit | (bit - 1)
          const isBrace = (braces & bit) !== 0
          if ((open & bit) !== 0) {
            store<u32>(STACK + ((depth as usize) << 2), top)
            if (++depth > maxDepth) return DOUBT
            top = select<u32>(OBJECT, 0, isBrace)
          } else {
            if (isBrace !== (inside !== 0)) return DOUBT
            if (--depth === 0) {
              within = passed
              break
            }
            top = load<u32>(STACK + ((depth as usize) << 2))
          }
          inside = maskOf(top)
          objects = (objects & passed) | (inside & ~passed)
        }
        keys = named & objects
        top += popcnt(keys & ~passed & within) as u32
        if (((top & ~OBJECT) as i32) > maxKeys) return DOUBT
      }
    }
    const keyStarts = keys | inKey
    const keyEnds = (keyStarts + strings) & ~strings
    let behindKey = (keyEnds << 1) | afterKey
    if (space !== 0) behindKey = behindSpace(behindKey, space)
    // Behind a comma, a colon and an opening bracket a value or key begins, or the bracket closes. Colons stand behind keys.
    const begun = beginnings | open
    const started = begun | opening
    const beside = behindComma | behindOpen
    wrong |=
      ((beside | behindColon) ^ (started | (close & behindOpen))) |
      (begun & beside & objects) |
      (colon ^ behindKey)
    if ((wrong & within) !== 0) return DOUBT
    values += popcnt((started ^ keys) & within) as i32

    if ((scalars | before) !== 0) {
      let checked = scalars & within
      if (scalar !== 0 || scalars === ~0) {
        // What goes on from the window before, or is longer than a block.
        const run = min<u64>(ctz(~scalars), end - at) as i32
        scalar = afterScalar(scalar !== 0 ? scalar : SCALAR_BEGIN, at, run)
        if (scalar === 0) return DOUBT
        if ((run as u64) < min<u64>(end - at, 64)) {
          if (((SCALAR_ENDS >> scalar) & 1) === 0) return DOUBT
          scalar = 0
        }
        checked = run === 64 ? 0 : checked & ~(((1 as u64) << run) - 1)
      }
      // One that reaches the end of the block is checked with the next block.
      const over = scalar !== 0 ? 0 : clz(~scalars)
      next = at + 64 - (over as usize)
      before = scalars >> 63
      checked &= (~0 as u64) >> over
      if (end - at < 64) {
        const size = (end - at) as u64
        const valid = ((1 as u64) << size) - 1
        before = (scalars >> (size - 1)) & 1
        if (scalar === 0 && before !== 0 && depth !== 0) {
          const begin = 64 - clz(~scalars & valid)
          scalar = afterScalar(SCALAR_BEGIN, at + (begin as usize), (size - begin) as i32)
          if (scalar === 0) return DOUBT
          checked &= ((1 as u64) << begin) - 1
        }
      }
      if (checked !== 0 && !areScalars(a, b, c, d, at, checked)) return DOUBT
    } else {
      next = at + 64
      before = 0
    }
    if (depth === 0) {
      if (values > maxValues) return DOUBT
      store<i32>(VALUES, values)
      return (at - WINDOW + 64 - (clz(within) as usize)) as i32
    }
    const keyed = (keyEnds - keyStarts) >> 63
    if (space === 0) {
      afterComma = comma >> 63
      afterColon = colon >> 63
      afterOpen = open >> 63
      afterKey = keyEnds >> 63
    } else if (~space !== 0) {
      const shift = clz(~space)
      afterComma = (comma << shift) >> 63
      afterColon = (colon << shift) >> 63
      afterOpen = (open << shift) >> 63
      afterKey = (keyEnds << shift) >> 63
    }
    inKey = keyed
  }
  if (values > maxValues) return DOUBT
  const size = (end - at) as u64
  if (size < 64 && length > 0) {
    reached = marks >> (size - 1)
    beginning += (64 - size) as i32
  }
  store<u32>(STACK + ((depth as usize) << 2), top)
  store<i32>(IN_STRING, (inString & 1) as i32)
  store<i32>(ESCAPED, reached as i32)
  store<i32>(SCALAR, scalar)
  store<i32>(PLACE, (afterComma | (afterColon << 1) | (afterOpen << 2) | (afterKey << 3) | (inKey << 4)) as i32)
  store<i32>(DEPTH, depth)
  store<i32>(VALUES, values)
  store<i32>(BEGINNING, max<i32>(beginning, 0))
  return MORE
}
