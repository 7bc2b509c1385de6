/** Which ZIP archives are read, and which are refused: those that are cut, altered, too large, or unsafe to unpack. */
import { describe, expect, test } from 'vitest'
import { readZip } from '../../../src/install/zip.ts'
import { zipOf } from './archive.ts'
import type { Member } from './archive.ts'

const BROKEN = 'it is not a ZIP archive that can be read'
const TWO: readonly Member[] = [
  { path: 'a.txt', text: 'stored' },
  { path: 'bin/b', text: 'deflated '.repeat(50), isDeflated: true, mode: 0o100755 },
]

test.each([0, 9, 0xffff])('members are read, with a comment of %i bytes after them', (length) => {
  const members = readZip(zipOf([{ path: 'bin/', text: '' }, ...TWO], 'c'.repeat(length)))
  expect(members.map(({ path, isExecutable, read }) => [path, isExecutable, read().toString()])).toEqual([
    ['a.txt', false, 'stored'],
    ['bin/b', true, 'deflated '.repeat(50)],
  ])
})

test('extra fields and comments of members are passed over', () => {
  const noted = TWO.map((member): Member => ({ ...member, extra: ['12345', '123'], comment: 'a note' }))
  expect(readZip(zipOf(noted)).map(({ path, read }) => [path, read().toString()])).toEqual([
    ['a.txt', 'stored'],
    ['bin/b', 'deflated '.repeat(50)],
  ])
})

test('an archive without members is one', () => {
  expect(readZip(zipOf([]))).toEqual([])
})

describe('refuses an archive', () => {
  const whole = zipOf(TWO)
  const directory = whole.readUInt32LE(whole.length - 6)

  test.each<[string, Buffer]>([
    ['that is empty', Buffer.alloc(0)],
    ['without an end', whole.subarray(0, -1)],
    ['with another mark in its directory', Buffer.from(whole.with(directory, 0x51))],
    ['whose directory is said to be longer', Buffer.from(whole.with(whole.length - 12, 3))],
  ])('%s', (_, bytes) => {
    expect(() => readZip(bytes)).toThrow(BROKEN)
  })

  test.each<[string, Member, string]>([
    ['with a path out of its folder', { path: '../a', text: '' }, 'outside of its folder'],
    ['with one that leaves it later', { path: 'a/../../b', text: '' }, 'outside of its folder'],
    ['with a path from the root', { path: '/a', text: '' }, 'outside of its folder'],
    ['with a path of Windows', { path: 'a\\b', text: '' }, 'outside of its folder'],
    ['with a drive', { path: 'C:a', text: '' }, 'outside of its folder'],
    ['with a path that ends early', { path: 'a\0b', text: '' }, 'outside of its folder'],
    ['with a symbolic link', { path: 'a', text: '/etc', mode: 0o120777 }, 'a symbolic link'],
    ['with an encrypted member', { path: 'a', text: '', flags: 1 }, 'it is encrypted, or compressed'],
    ['compressed in another way', { path: 'a', text: '', method: 12 }, 'it is encrypted, or compressed'],
  ])('%s', (_, member, reason) => {
    expect(() => readZip(zipOf([member]))).toThrow(reason)
  })

  test('with more members or bytes than allowed', () => {
    const total = 6 + 450
    expect(readZip(whole, { maxMembers: 2, maxBytes: total })).toHaveLength(2)
    expect(() => readZip(whole, { maxMembers: 1, maxBytes: total })).toThrow('it contains more than 1 files')
    expect(() => readZip(whole, { maxMembers: 2, maxBytes: total - 1 })).toThrow(`it unpacks to more than ${total - 1} bytes`)
  })

  test('once a member with another mark, or of another length, is read', () => {
    const marked = Buffer.from(whole)
    marked[0] = 0x51
    const longer = Buffer.from(whole)
    longer.writeUInt32LE(7, directory + 24)
    for (const bytes of [marked, longer]) expect(readZip(bytes)[0]?.read).toThrow(BROKEN)
  })
})
