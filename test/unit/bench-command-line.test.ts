/** What is typed wrong at the benchmark: one sentence that names the way out. */
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { awaitWritable, numberOf, parseOptions, UsageError } from '../../bench/command-line.ts'
import { findPeers } from '../../bench/peers.ts'

const OPTIONS = { rounds: { type: 'string', default: '9' } } as const

test('an unknown option, a value that is missing and a stray word are told of as such', () => {
  expect(parseOptions(['--rounds', '3'], OPTIONS)).toEqual({ rounds: '3' })
  for (const [args, why] of [
    [['--round', '3'], "Unknown option '--round'"],
    [['--rounds'], "Option '--rounds <value>' argument missing"],
    [['3'], "Unexpected argument '3'"],
  ] as const) {
    expect(() => parseOptions(args, OPTIONS)).toThrow(UsageError)
    expect(() => parseOptions(args, OPTIONS)).toThrow(why)
  }
})

test('a number is whole and from 1, or above 0 where it may have parts', () => {
  expect([numberOf('--rounds', '7'), numberOf('--seconds', '0.5', true)]).toEqual([7, 0.5])
  for (const text of ['x', '', '0', '-1', '1.5', 'Infinity'])
    expect(() => numberOf('--rounds', text)).toThrow(`--rounds: expected a whole number from 1, got ${text}`)
  for (const text of ['x', '', '0', '-1', 'Infinity'])
    expect(() => numberOf('--seconds', text, true)).toThrow(`--seconds: expected a number above 0, got ${text}`)
})

test('a folder without any of the peers is told with what puts them there', async () => {
  const dir = join(tmpdir(), 'trunkline-no-such-folder')
  await expect(findPeers(dir)).rejects.toThrow(`npm install --prefix ${dir} mcp-hub mcp-proxy supergateway`)
  expect((await findPeers(undefined)).absent).toMatchObject({ 'mcp-hub': 'no --peers DIR' })
})

test('a file that cannot be written is told of before the run', async () => {
  await expect(awaitWritable('--json', join(tmpdir(), 'trunkline-no-such-folder', 'x.json'))).rejects.toThrow(UsageError)
  await expect(awaitWritable('--json', join(tmpdir(), 'x.json'))).resolves.toBeUndefined()
})
