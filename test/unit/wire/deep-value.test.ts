/** The loop that walks deep JSON accepts what a JSON parser accepts, and nothing else. */
import { expect, test } from 'vitest'
import { isDeeperThan } from '../../../src/wire/json/deep-value.ts'
import { Scanner } from '../../../src/wire/json/scan.ts'

const LEVELS = 600
const accepts = (read: () => unknown): boolean => {
  try {
    read()
    return true
  } catch {
    return false
  }
}
const INNERMOST = [
  ['1', '-0.5e+3', '""', '"a\\"]}"', 'true', 'false', 'null', '{}', '[]', ' { } ', '[ ]', '[1,2]', '[[],{}]'],
  ['{"a":1}', '{ "a" : [ 1 , {"b":null} ] , "c":"]" }', '[{"a":{}},[[]]]'],
  ['', ',', ':', '}', ']', '[,]', '[1,]', '[1 2]', '{,}', '{"a"}', '{"a":}', '{"a":1,}', '{"a" 1}', '{1:2}', '{"a":1]', '[1}'],
  ['tru', 'nul', '01', '1.', '"', '"\\x"', '[1]]', '{}}', '{"a":1}{', 'undefined'],
].flat()

test.each(INNERMOST)('T-24 %j inside 600 levels is accepted as by a parser', (text) => {
  for (const [open, close] of [
    ['[', ']'],
    ['{"k":', '}'],
    ['[0 , ', ' , 1 ] '],
  ]) {
    const json = open!.repeat(LEVELS) + text + close!.repeat(LEVELS)
    const bytes = Buffer.from(` ${json}`)
    const scanned = accepts(() => {
      const scanner = new Scanner(bytes)
      expect(scanner.skip()).toEqual({ start: 1, end: bytes.toString().trimEnd().length })
      scanner.expectEnd()
    })
    expect(scanned).toBe(accepts(() => void JSON.parse(json)))
  }
})

test.each([
  ['[[1]]', 2],
  ['{"a":"[[[[","b":[]}', 2],
  ['"\\"[[["', 0],
  ['[{},{},{"a":[]}]', 3],
])('%s has %d levels', (json, levels) => {
  const bytes = Buffer.from(json)
  const span = { start: 0, end: bytes.length }
  expect(isDeeperThan(bytes, span, levels)).toBe(false)
  if (levels > 0) expect(isDeeperThan(bytes, span, levels - 1)).toBe(true)
})
