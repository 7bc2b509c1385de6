/**
 * The judge of the differential generator finds what it is there for: transcripts of a gateway that keeps the rules are clean, and each
 * broken rule is one finding. (A judge that finds nothing would pass every run.)
 */
import { describe, expect, test } from 'vitest'
import { PLAIN_SETTING } from '../../support/differential/catalog.ts'
import type { Exchange, Question } from '../../support/differential/conversation.ts'
import { judgeList } from '../../support/differential/judge-lists.ts'
import { judgeUpdate } from '../../support/differential/judge-notifications.ts'
import { judge } from '../../support/differential/judge.ts'
import type { Cell, Observed } from '../../support/differential/model.ts'

const CELL: Cell = {
  hostEra: 'legacy',
  hostRevision: '2025-11-25',
  serverEra: 'legacy',
  isServerHttp: true,
  isHostHttp: true,
  prefix: 'fs',
  endpoint: 'merged',
  catalog: PLAIN_SETTING.catalog,
  curating: PLAIN_SETTING.curating,
}
const QUESTION: Question = { kind: 'form', message: '"Which?"', more: [], action: 'accept', answer: [] }
const FORM = '"requestedSchema":{"type":"object"}'
const RESULT: Exchange['reply']['outcome'] = {
  kind: 'result',
  blocks: [],
  structured: undefined,
  isError: undefined,
  more: [],
  meta: undefined,
}
const exchange = (reply: Partial<Exchange['reply']> = {}): Exchange => ({
  host: 0,
  method: 'tools/call',
  target: 0,
  id: '7',
  arguments: '{"n":1.0}',
  more: [],
  meta: undefined,
  token: '"t"',
  level: undefined,
  spelling: { space: '', turn: 0, escapeEvery: 0 },
  reply: {
    questions: [],
    progress: [{ value: 1, more: [] }],
    logs: [{ level: 'error', more: [] }],
    outcome: RESULT,
    spelling: { space: '', turn: 0, escapeEvery: 0 },
    ...reply,
  },
})
const SENT =
  '{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"fs__one","arguments":{"n":1.0},"_meta":{"progressToken":"t","x/y":1e400},"vendor":[ 1 ]}}'
const RECEIVED =
  '{"jsonrpc":"2.0","id":41,"method":"tools/call","params":{"name":"one","arguments":{"n":1.0},"_meta":{"progressToken":41,"x/y":1e400},"vendor":[ 1 ]}}'
const ANSWERED =
  '{"jsonrpc":"2.0","id":41,"result":{"content":[{"type":"resource_link","uri":"file:///a","name":"n"}],"structuredContent":{"n":-0},"_meta":{"x/y":1},"x-turn":"turn 1"}}'
const ANSWER = ANSWERED.replace('"id":41', '"id":7').replace('file:///a', 'fs+file:///a')
const note = (method: string, params: string): string => `{"jsonrpc":"2.0","method":"notifications/${method}","params":${params}}`

const KEPT: Observed = {
  exchange: exchange(),
  mark: 'turn 1',
  target: 'one',
  capabilities: '{"elicitation":{}}',
  roots: '{"roots":[]}',
  sent: SENT,
  received: [{ text: RECEIVED, declared: '{"elicitation":{}}' }],
  answered: ANSWERED,
  notifications: [
    note('progress', '{"progressToken":"t","progress":1}'),
    note('message', '{"level":"error","logger":"fs/log turn 1","data":1}'),
  ],
  isAlone: true,
  answer: ANSWER,
  answeredId: '7',
  asked: [],
  questions: [],
  level: undefined,
  cancellation: undefined,
}
const CANCELLED: Observed = {
  ...KEPT,
  exchange: exchange({ outcome: { kind: 'cancelled', reason: '"enough"', more: [], meta: [] } }),
  answered: undefined,
  answer: '',
  notifications: [],
  cancellation: {
    sent: '{"requestId":7,"reason":"enough","_meta":{"x/y":1.0}}',
    received: '{"requestId":41,"reason":"enough","_meta":{"x/y":1.0}}',
  },
}
const ASKED: Observed = {
  ...KEPT,
  exchange: exchange({ questions: [QUESTION] }),
  questions: [
    { question: QUESTION, params: `{"message":"Which? turn 1",${FORM}}`, answer: '{"action":"accept","content":{"n":1.0}}' },
  ],
  asked: [
    { params: `{"message":"[FS] Which? turn 1",${FORM},"mode":"form"}`, answer: '{"action":"accept","content":{"n":1.0}}' },
  ],
}
const FAILED: Observed = {
  ...KEPT,
  exchange: exchange({ outcome: { kind: 'error', code: -32601, message: '"caf\\u00e9"', data: '[1.0]' } }),
  answered: '{"jsonrpc":"2.0","id":41,"error":{"code":-32601,"message":"caf\\u00e9","data":[1.0]}}',
  answer:
    '{"jsonrpc":"2.0","id":7,"error":{"code":-32603,"message":"caf\\u00e9","data":{"original":{"code":-32601,"message":"caf\\u00e9","data":[1.0]}}}}',
}

/** The same transcript with one text in place of another, wherever what the gateway wrote holds it. */
const altered = (kept: Observed, from: string, to: string): Observed => {
  const replace = (text: string): string => text.replaceAll(from, to)
  return {
    ...kept,
    received: kept.received.map(({ text, declared }) => ({ text: replace(text), declared: replace(declared) })),
    notifications: kept.notifications.map(replace),
    answer: replace(kept.answer),
    asked: kept.asked.map(({ params, answer }) => ({ params: replace(params), answer })),
    questions: kept.questions.map((each) => ({ ...each, answer: replace(each.answer) })),
    cancellation: kept.cancellation && {
      ...kept.cancellation,
      received: kept.cancellation.received && replace(kept.cancellation.received),
    },
  }
}

test.each([
  ['a result', KEPT],
  ['a cancellation', CANCELLED],
  ['a question', ASKED],
  ['an error', FAILED],
])('%s as the rules have it is no finding', (_name, kept) => {
  expect(judge(CELL, kept)).toEqual([])
})

describe('B016 B017 B018 B019 B048 B075 B109 B136 B272 B273 is found by the judge:', () => {
  test.each<[string, Observed, RegExp]>([
    ['a number of the arguments that is printed again', altered(KEPT, '{"n":1.0}', '{"n":1}'), /the arguments .*1\.0.* became/],
    ['a number of the result that is printed again', altered(KEPT, '-0', '0'), /structuredContent was changed/],
    ['white space of an unknown member', altered(KEPT, '[ 1 ]', '[1]'), /params\["vendor"\] was changed/],
    ['_meta of a request that is dropped', altered(KEPT, ',"x/y":1e400', ''), /params\._meta\["x\/y"\] was lost/],
    ['_meta of a result that is dropped', altered(KEPT, '"_meta":{"x/y":1},', ''), /result\._meta\["x\/y"\] was lost/],
    ['a name that keeps its prefix', altered(KEPT, '"name":"one"', '"name":"fs__one"'), /params\.name/],
    ['a URI that is not exposed', altered(KEPT, 'fs+file', 'file'), /content\[0\]\.uri/],
    [
      'a block that is lost',
      altered(KEPT, '{"type":"resource_link","uri":"fs+file:///a","name":"n"}', ''),
      /1 content blocks became/,
    ],
    ['the answer of another call', altered(KEPT, '"x-turn":"turn 1"', '"x-turn":"turn 2"'), /result\["x-turn"\] was changed/],
    ['the id of another call', altered(KEPT, '"id":7', '"id":"7"'), /the answer has the id "7"/],
    ['a log message of another call', altered(KEPT, 'log turn 1', 'log turn 2'), /the logger is/],
    ['a log message that is lost', { ...KEPT, notifications: KEPT.notifications.slice(0, 1) }, /1 log messages were lost/],
    ['a log message below the level', { ...KEPT, level: 'critical' }, /below the level critical/],
    ['progress under another token', altered(KEPT, '"progressToken":"t"', '"progressToken":41'), /progress has the token 41/],
    ['progress that is lost in the end', { ...KEPT, notifications: KEPT.notifications.slice(1) }, /progress ended with/],
    [
      'a capability that the host did not declare',
      altered(KEPT, '{"elicitation":{}}', '{"elicitation":{},"sampling":{}}'),
      /was declared to the server/,
    ],
    ['a call that is sent twice', { ...KEPT, received: [...KEPT.received, ...KEPT.received] }, /received 2 requests/],
    ['a reason that is lost', altered(CANCELLED, '"reason":"enough",', ''), /cancellation\["reason"\] was lost/],
    [
      '_meta of a cancellation that is printed again',
      altered(CANCELLED, '1.0', '1'),
      /cancellation\._meta\["x\/y"\] was changed/,
    ],
    ['an answer to what was cancelled', { ...CANCELLED, answer: ANSWER }, /a cancelled request was answered/],
    ['a question without its label', altered(ASKED, '[FS] ', ''), /a question reached the host as/],
    ['a question that nobody was asked', { ...ASKED, asked: [] }, /was never asked/],
    [
      'an answer that is printed again',
      altered(ASKED, '"content":{"n":1.0}', '"content":{"n":1}'),
      /the answer .* reached the server as/,
    ],
    [
      'a code that is relayed',
      altered(FAILED, '"code":-32603', '"code":-32601'),
      /the code -32601 became -32601 instead of -32603/,
    ],
    [
      'an error of a completion that the server lacks',
      { ...FAILED, exchange: { ...FAILED.exchange, method: 'completion/complete' } },
      /a completion that the server lacks became/,
    ],
    ['an original error that is lost', altered(FAILED, '"original"', '"cause"'), /nothing is left of the error -32601/],
    [
      'a message that is spelled otherwise',
      altered(FAILED, '"message":"caf\\u00e9"', '"message":"café"'),
      /error\.message was changed/,
    ],
  ])('%s', (_name, broken, sentence) => {
    expect(judge(CELL, broken).join('\n')).toMatch(sentence)
  })
})

describe('B277 at a bridge, and between host and server themselves,', () => {
  const bare = (kept: Observed): Observed =>
    [
      ['fs__', ''],
      ['fs+', ''],
      ['fs/', ''],
      ['[FS] ', ''],
    ].reduce((left, [from = '', to = '']) => altered(left, from, to), {
      ...kept,
      sent: kept.sent.replace('fs__', ''),
    })
  const FAILED_BARE = { ...bare(FAILED), answer: (FAILED.answered ?? '').replace('"id":41', '"id":7') }
  const ASKED_BARE = bare(altered(ASKED, ',"mode":"form"', ''))

  describe.each(['bridge', 'direct'] as const)('%s:', (endpoint) => {
    const cell: Cell = { ...CELL, prefix: '', endpoint }
    test.each([
      ['a result', bare(KEPT)],
      ['a question', ASKED_BARE],
      ['an error', FAILED_BARE],
    ])('%s as it came is no finding', (_name, kept) => {
      expect(judge(cell, kept)).toEqual([])
    })

    test.each<[string, Observed, RegExp]>([
      ['an exposed URI', altered(bare(KEPT), '"uri":"file', '"uri":"fs+file'), /result\["content"\] was changed/],
      ['a logger with a prefix', altered(bare(KEPT), 'log turn', 'fs/log turn'), /the logger is/],
      ['a log message that is withheld', { ...bare(KEPT), level: 'critical', notifications: [] }, /log messages were lost/],
      [
        'a label',
        altered(ASKED_BARE, '"message":"Which', '"message":"[FS] Which'),
        /was never asked|was changed|reached the host/,
      ],
      ['a mode that the server did not say', altered(ASKED_BARE, '"requestedSchema"', '"mode":"form","requestedSchema"'), /mode/],
      ['a code that is replaced', altered(FAILED_BARE, '"code":-32601', '"code":-32603'), /error\["code"\] was changed/],
    ])('%s is found', (_name, broken, sentence) => {
      expect(judge(cell, broken).join('\n')).toMatch(sentence)
    })
  })
})

describe('lists', () => {
  const page = (...names: string[]): string =>
    `{"jsonrpc":"2.0","id":1,"result":{"tools":[${names.map((name) => `{"name":"${name}","inputSchema":{"type":"object"}}`).join(',')}]}}`
  const judged = (...pages: string[]): string => {
    const found: string[] = []
    judgeList(CELL, 'tools', pages, 5_000, ['other__idle'], (text) => found.push(text))
    return found.join('\n')
  }

  test('as the rules have them are no finding, whatever the pages', () => {
    expect(judged(page('fs__one', 'fs__two', 'fs__three', 'other__idle'))).toBe('')
    expect(judged(page('fs__one', 'fs__two'), page('other__idle', 'fs__three'))).toBe('')
  })

  test.each([
    ['B128 an old list that is kept', page('fs__one', 'fs__two', 'fs__old'), /tools are/],
    ['B292 another order', page('fs__two', 'fs__one', 'fs__three'), /tools are/],
    [
      'B018 a schema that is printed again',
      page('fs__one', 'fs__two', 'fs__three').replace('{"type":"object"}', '{ "type":"object"}'),
      /inputSchema/,
    ],
    ['B016 a member that nobody sent', page('fs__one', 'fs__two', 'fs__three').replace('"name"', '"x":1,"name"'), /never sent/],
    [
      'B106 a caching hint for a legacy host',
      page('fs__one', 'fs__two', 'fs__three').replace('"tools"', '"ttlMs":0,"tools"'),
      /"ttlMs"/,
    ],
  ])('%s', (_name, text, sentence) => {
    expect(judged(text)).toMatch(sentence)
  })
})

test('B168 an update under the wrong URI, or none, is found', () => {
  const found: string[] = []
  const sent = note('resources/updated', '{"uri":"file:///a","x":1.0}')
  const say = (text: string): void => void found.push(text)
  judgeUpdate('fs+file:///a', sent, [note('resources/updated', '{"uri":"fs+file:///a","x":1.0}')], say)
  expect(found).toEqual([])
  judgeUpdate('fs+file:///a', sent, [note('resources/updated', '{"uri":"file:///a","x":1}')], say)
  judgeUpdate('fs+file:///a', sent, [], say)
  expect(found).toEqual([
    'the update of "file:///a" is told as "file:///a"',
    'update["x"] was changed: 1.0 became 1',
    expect.stringContaining('one update became 0'),
  ])
})
