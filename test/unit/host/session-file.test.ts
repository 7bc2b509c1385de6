/** What of legacy sessions is kept in the state folder beside their ids (B276): bounded, with an end, and never a reason to fail. */
import { mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { SessionFile } from '../../../src/host/session/session-file.ts'
import type { SessionFileOptions } from '../../../src/host/session/session-file.ts'
import { encodeSettings, NO_SETTINGS, readSettings, SETTINGS } from '../../../src/host/session/session-settings.ts'
import type { SessionSettings } from '../../../src/host/session/session-settings.ts'
import { Payload } from '../../../src/wire/message/payload.ts'

let folder: string
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'trunkline-test-'))
})
afterEach(() => rmSync(folder, { recursive: true, force: true, maxRetries: 20, retryDelay: 100 }))

const digest = (name: string): string => name.padEnd(22, '_')
const LATER = Date.now() + 3_600_000
const open = (more: Partial<SessionFileOptions> = {}): { file: SessionFile; warnings: string[] } => {
  const warnings: string[] = []
  const log = { warn: (_facts: object, message: string): void => void warnings.push(message) }
  return { file: new SessionFile({ folder, name: 'session-facts', maxEntries: 3, maxBytes: 100, log, ...more }), warnings }
}
const textOf = (file: SessionFile, name: string): string | undefined => file.get(digest(name))?.text

describe('a file of facts about sessions', () => {
  test('a later process finds what was set, as it was set last, and none of what was deleted', () => {
    const { file } = open()
    file.set(digest('a'), '1', LATER)
    file.set(digest('b'), '2', LATER)
    file.set(digest('a'), '{"x":"\\u00e9"}', LATER + 1)
    expect([file.delete(digest('b')), file.delete(digest('b'))]).toEqual([true, false])
    file.close()
    expect(statSync(join(folder, 'session-facts.json')).mode & 0o777).toBe(0o600)
    const { file: next } = open()
    expect(textOf(next, 'a')).toBe('{"x":"é"}')
    expect(next.has(digest('b'))).toBe(false)
  })

  test('what was set first goes first, by number and by size', () => {
    const { file } = open()
    for (const name of ['a', 'b', 'c', 'a', 'd']) file.set(digest(name), '1', LATER)
    expect(['a', 'b', 'c', 'd'].map((name) => file.has(digest(name)))).toEqual([true, false, true, true])
    file.set(digest('e'), JSON.stringify('x'.repeat(97)), LATER)
    expect(['a', 'c', 'd', 'e'].map((name) => file.has(digest(name)))).toEqual([false, false, true, true])
    file.set(digest('f'), JSON.stringify('x'.repeat(99)), LATER)
    expect(['e', 'f'].map((name) => file.has(digest(name)))).toEqual([false, false])
    file.set(digest('g'), '1', LATER)
    expect(textOf(file, 'g')).toBe('1')
  })

  test('what is past its end is neither written nor read', () => {
    const { file } = open()
    file.set(digest('a'), '1', Date.now() - 1)
    file.set(digest('b'), '2', LATER)
    file.close()
    expect(readFileSync(join(folder, 'session-facts.json'), 'utf8')).not.toContain(digest('a'))
    writeFileSync(join(folder, 'session-facts.json'), JSON.stringify([[digest('c'), Date.now() - 1, 3]]))
    expect(open().file.has(digest('c'))).toBe(false)
  })

  test('several processes of one folder write files of their own; the latest of all counts', () => {
    const [one, other] = [open({ member: 1 }).file, open({ member: 2 }).file]
    one.set(digest('a'), '"new"', LATER + 1)
    other.set(digest('a'), '"old"', LATER)
    other.set(digest('b'), '"b"', LATER)
    for (const file of [one, other]) file.close()
    for (const member of [undefined, 1, 2, 3]) {
      const { file } = open({ member })
      expect([textOf(file, 'a'), textOf(file, 'b')]).toEqual(['"new"', '"b"'])
    }
  })

  test.each(['', '{', '{}', '[1]', '[["a"]]', '[[1,2,3]]', '[null]'])(
    'a file that is %j lists nothing, and is replaced',
    (text) => {
      writeFileSync(join(folder, 'session-facts.json'), text)
      const { file, warnings } = open()
      file.set(digest('a'), '1', LATER)
      expect(textOf(open().file, 'a')).toBe('1')
      expect(warnings).toEqual([])
    },
  )

  test('the list of ended sessions of an earlier version is read', () => {
    writeFileSync(join(folder, 'session-facts.json'), JSON.stringify([[digest('a'), LATER]]))
    expect(open().file.has(digest('a'))).toBe(true)
  })

  test('where the folder cannot be written the log says so, and what was set is known here', () => {
    const missing = join(folder, 'missing')
    const { file, warnings } = open({ folder: missing })
    file.set(digest('a'), '1', LATER)
    expect(textOf(file, 'a')).toBe('1')
    expect(warnings).toEqual(['session facts cannot be written down'])
  })

  test('without a folder nothing is written', () => {
    const { file, warnings } = open({ folder: undefined })
    file.set(digest('a'), '1', LATER)
    file.close()
    expect([textOf(file, 'a'), warnings]).toEqual(['1', []])
  })
})

describe('settings of a session', () => {
  const after = (requests: readonly [method: string, params?: object][]): SessionSettings =>
    requests.reduce<SessionSettings>(
      (settings, [method, params]) => SETTINGS.get(method)?.(settings, params && Payload.of(params)) ?? settings,
      NO_SETTINGS,
    )

  test('are the latest level, and what is watched', () => {
    const settings = after([
      ['logging/setLevel', { level: 'error' }],
      ['resources/subscribe', { uri: 'x:1' }],
      ['resources/subscribe', { uri: 'x:2' }],
      ['resources/subscribe', { uri: 'x:1' }],
      ['logging/setLevel', { level: 'alert' }],
      ['resources/unsubscribe', { uri: 'x:1' }],
      ['tools/call', { uri: 'x:3', level: 'debug' }],
      ['constructor', {}],
    ])
    expect(settings).toEqual({ level: 'alert', watched: ['x:2'] })
    expect(readSettings(encodeSettings(settings).text)).toEqual(settings)
  })

  test('are the same object where a request sets nothing else', () => {
    const settings = after([['logging/setLevel', { level: 'error' }]])
    const set = (method: string, params?: object): unknown => SETTINGS.get(method)?.(settings, params && Payload.of(params))
    expect(set('logging/setLevel', { level: 'error' })).toBe(settings)
    expect(set('logging/setLevel', { level: 'loud' })).toBe(settings)
    expect(set('resources/unsubscribe', { uri: 'x:1' })).toBe(settings)
    expect(set('resources/subscribe')).toBe(settings)
  })

  test('are written down within 16 KiB: the first of what is watched, and that some is missing', () => {
    const watched = Array.from({ length: 256 }, (_, at) => `x:${String(at).padStart(100, '0')}`)
    const { text, isWhole } = encodeSettings({ level: 'error', watched })
    expect(isWhole).toBe(false)
    expect(text.length).toBeLessThanOrEqual(16 * 1024)
    const read = readSettings(text)
    expect(read.level).toBe('error')
    expect(read.watched).toEqual(watched.slice(0, 128))
    expect(encodeSettings({ level: 'error', watched: ['x'.repeat(20_000)] })).toEqual({
      text: '{"level":"error"}',
      isWhole: false,
    })
  })

  test.each(['null', '{}', '{"level":"loud","watched":1}', '{"watched":[1,null]}', '[]', '1'])('%s sets nothing', (text) => {
    expect(readSettings(text)).toEqual({})
  })
})
