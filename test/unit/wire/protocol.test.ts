/** What the revisions of the protocol define: their order, their methods and the extensions. */
import { describe, expect, test } from 'vitest'
import {
  APPS_EXTENSION,
  declaresApps,
  declaresTasks,
  isTerminal,
  runsToolsAsTasks,
  TASKS,
  withoutTasks,
  withTasks,
} from '../../../src/wire/protocol/extensions.ts'
import { cleanLabel, cleanMessage } from '../../../src/wire/protocol/label.ts'
import {
  capabilityOf,
  isLogLevel,
  isOfLegacyOnly,
  isServerMethod,
  isVendorNotification,
  LIST_CHANGED,
  methodRow,
  METHODS,
  reaches,
} from '../../../src/wire/protocol/methods.ts'
import { isAtLeast, isRevision, latestLegacyWithin, revisionsWithin } from '../../../src/wire/protocol/revisions.ts'

describe('revisions', () => {
  const ALL = ['2024-11-05', '2025-03-26', '2025-06-18', '2025-11-25', '2026-07-28']

  test.each([
    ['2024-11-05', '2026-07-28', ALL, '2025-11-25'],
    ['2025-03-26', '2025-06-18', ['2025-03-26', '2025-06-18'], '2025-06-18'],
    ['2026-07-28', '2026-07-28', ['2026-07-28'], undefined],
    ['2026-08-01', '2027-01-01', [], undefined],
  ])('from %s to %s are %j, and the latest legacy one is %s', (min, max, revisions, latest) => {
    expect([revisionsWithin({ min, max }), latestLegacyWithin({ min, max })]).toEqual([revisions, latest])
  })

  test('are these five, in the order of their dates', () => {
    expect([...ALL, '2025-01-01', ''].filter(isRevision)).toEqual(ALL)
    expect([isAtLeast('2025-06-18', '2025-06-18'), isAtLeast('2025-06-18', '2025-11-25')]).toEqual([true, false])
  })
})

describe('methods', () => {
  const having = (member: 'hasNameHeader' | 'mayAskInput' | 'cacheable'): string[] =>
    Object.keys(METHODS).filter((method) => METHODS[method]?.[member] === true)

  test('may name a target in a header, ask for input, and be cached', () => {
    expect(having('hasNameHeader')).toEqual([
      'tools/call',
      'resources/read',
      'prompts/get',
      'tasks/get',
      'tasks/update',
      'tasks/cancel',
    ])
    expect(having('mayAskInput')).toEqual(['tools/call', 'resources/read', 'prompts/get', 'tasks/result'])
    expect(having('cacheable')).toEqual([
      'server/discover',
      'tools/list',
      'resources/list',
      'resources/templates/list',
      'prompts/list',
      'resources/read',
    ])
  })

  test('belong to an era, to servers, and to a capability', () => {
    expect(methodRow('tools/call', 'legacy')).toBe(METHODS['tools/call'])
    expect([methodRow('ping', 'modern'), methodRow('server/discover', 'legacy'), methodRow('constructor', 'modern')]).toEqual(
      Array.from({ length: 3 }, () => undefined),
    )
    expect(['tools/call', 'tasks/list', 'ping', 'vendor/x', 'constructor'].map(isServerMethod)).toEqual([
      true,
      true,
      true,
      false,
      false,
    ])
    expect(['tools/call', 'tasks/list', 'ping', 'vendor/x'].map(isOfLegacyOnly)).toEqual([false, true, true, false])
    expect(['tools/call', 'resources/read', 'prompts/get', 'completion/complete'].map(capabilityOf)).toEqual([
      'tools',
      'resources',
      'prompts',
      'completions',
    ])
    expect(['tools/list', 'tasks/get', 'vendor/x'].map(capabilityOf)).toEqual(Array.from({ length: 3 }, () => undefined))
  })

  test('that notify are those of a vendor where no revision defines them', () => {
    const sent = [
      'notifications/message',
      'notifications/tools/list_changed',
      'notifications/messages',
      'notifications/tool/list_changed',
      'x',
    ]
    expect(sent.filter(isVendorNotification)).toEqual(['notifications/messages', 'notifications/tool/list_changed', 'x'])
    expect([...LIST_CHANGED]).toEqual([
      ['notifications/tools/list_changed', 'tools'],
      ['notifications/prompts/list_changed', 'prompts'],
      ['notifications/resources/list_changed', 'resources'],
    ])
  })

  test('log at a level that reaches itself and those below it', () => {
    expect([reaches('error', 'error'), reaches('error', 'warning'), reaches('info', 'notice')]).toEqual([true, true, false])
    expect(['debug', 'emergency', 'trace', 7, undefined].filter(isLogLevel)).toEqual(['debug', 'emergency'])
  })
})

describe('extensions', () => {
  test('are declared under their names', () => {
    expect([declaresApps({ extensions: APPS_EXTENSION }), declaresApps({ extensions: {} }), declaresApps({})]).toEqual([
      true,
      false,
      false,
    ])
    expect([declaresTasks({ extensions: { [TASKS]: {} } }), declaresTasks({ extensions: 'x' }), declaresTasks({})]).toEqual([
      true,
      false,
      false,
    ])
  })

  test('tasks are added and removed beside all others', () => {
    const others = { tools: {}, extensions: { x: 1 } }
    expect(withTasks(others)).toEqual({ tools: {}, extensions: { x: 1, [TASKS]: {} } })
    expect(withTasks({})).toEqual({ extensions: { [TASKS]: {} } })
    expect(withoutTasks(withTasks(others))).toEqual(others)
    expect(withoutTasks(others)).toBe(others)
  })

  test('tasks of a legacy server are declared for calls of tools, and end in three ways', () => {
    expect(runsToolsAsTasks({ tasks: { requests: { tools: { call: {} } } } })).toBe(true)
    expect([{}, { tasks: {} }, { tasks: { requests: { sampling: {} } } }].map(runsToolsAsTasks)).toEqual([false, false, false])
    const states = ['working', 'input_required', 'completed', 'failed', 'cancelled', undefined]
    expect(states.filter(isTerminal)).toEqual(['completed', 'failed', 'cancelled'])
  })
})

test('B261 a label is one line that cannot reorder the text beside it; a message keeps its lines', () => {
  expect(cleanLabel('a\nb\u202e\x1b[1m\u2028c')).toBe('ab[1mc')
  expect(cleanMessage('a\r\nb\u202e\x1bc')).toBe('a\nbc')
})

test.each([
  ['control characters', [0x00, 0x09, 0x0b, 0x1f, 0x7f, 0x80, 0x85, 0x9f]],
  ['marks of direction', [0x061c, 0x200e, 0x200f]],
  ['embeddings and overrides', [0x202a, 0x202b, 0x202c, 0x202d, 0x202e]],
  ['isolates', [0x2066, 0x2067, 0x2068, 0x2069]],
  ['separators of lines and paragraphs', [0x2028, 0x2029]],
])('B261 no %s are left in a label or a message', (_, codes) => {
  const text = `a${String.fromCodePoint(...codes)}b`
  expect([cleanLabel(text), cleanMessage(text)]).toEqual(['ab', 'ab'])
})
