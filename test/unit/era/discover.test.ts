/** The era of a server by its answer to a probe, and what a bridge declares for it (BRIDGING 5.2, 3.21). */
import { describe, expect, test } from 'vitest'
import { bridgedCapabilities } from '../../../src/era/host/bridged-capabilities.ts'
import { TASKS_CAPABILITY } from '../../../src/era/host/legacy-host.ts'
import { withClientCredentials } from '../../../src/era/server/client-credentials.ts'
import { readDiscover } from '../../../src/era/server/discover.ts'
import { resultOf } from '../../../src/era/server/result-of.ts'
import type { Envelope } from '../../../src/wire/message/envelope.ts'
import { Payload } from '../../../src/wire/message/payload.ts'
import { TASKS } from '../../../src/wire/protocol/extensions.ts'
import { META } from '../../../src/wire/protocol/meta.ts'
import type { Revision } from '../../../src/wire/protocol/revisions.ts'

// Cast: what is read of an answer.
const answerOf = ({ result, error, status }: { result?: object; error?: object; status?: number }): Envelope =>
  ({ result: result && Payload.of(result), error: error && Payload.of(error), status }) as unknown as Envelope
const MODERN = '2026-07-28'

describe('an answer to server/discover', () => {
  test.each<[object, string | object]>([
    [{ supportedVersions: [MODERN, '2025-11-25'] }, 'modern'],
    [{ supportedVersions: ['2025-11-25'] }, 'legacy'],
    [{ supportedVersions: ['2099-01-01', '2025-03-26'] }, 'legacy'],
    [{ supportedVersions: [] }, 'legacy'],
    [{ supportedVersions: MODERN }, 'legacy'],
    [{}, 'legacy'],
    [{ supportedVersions: ['2099-01-01', 7] }, { says: 'no common version', offered: ['2099-01-01', '7'] }],
  ])('with the result %j', (result, expected) => {
    const reading = readDiscover(answerOf({ result }))
    if (typeof expected === 'string') expect(reading.says).toBe(expected)
    else expect(reading).toEqual(expected)
  })

  test.each<[object, string | object]>([
    [{ code: -32020 }, 'again'],
    [{ code: -32021 }, 'again'],
    [{ code: -32601 }, 'legacy'],
    [{ code: -32022 }, 'legacy'],
    [{ code: -32022, data: { supported: MODERN } }, 'legacy'],
    [{ code: -32022, data: { supported: [MODERN] } }, 'again'],
    [{ code: -32022, data: { supported: ['2025-11-25'] } }, 'legacy'],
    [
      { code: -32022, data: { supported: ['2099-01-01'] } },
      { says: 'no common version', offered: ['2099-01-01'] },
    ],
    [{}, 'legacy'],
  ])('with the error %j', (error, expected) => {
    const reading = readDiscover(answerOf({ error }))
    if (typeof expected === 'string') expect(reading.says).toBe(expected)
    else expect(reading).toEqual(expected)
  })

  test('names the server, in _meta or beside it', () => {
    const serverOf = (result: object): unknown => {
      const reading = readDiscover(answerOf({ result: { supportedVersions: [MODERN], ...result } }))
      return 'server' in reading ? reading.server : reading
    }
    expect(serverOf({})).toEqual({ capabilities: {}, instructions: undefined, serverInfo: undefined, gateways: [] })
    const [one, two] = [{ name: 'one' }, { name: 'two' }]
    expect(serverOf({ serverInfo: one, capabilities: { tools: {} }, instructions: 'Ask.' })).toEqual({
      capabilities: { tools: {} },
      instructions: 'Ask.',
      serverInfo: one,
      gateways: [],
    })
    const _meta = { [META.serverInfo]: two, [META.gateways]: ['g'] }
    expect(serverOf({ serverInfo: one, _meta })).toMatchObject({ serverInfo: two, gateways: ['g'] })
  })
})

test('an answer has a result, or an error with a code and a message', () => {
  const message = answerOf({ result: { a: 1 } })
  expect(resultOf(message)).toBe(message.result)
  const error = { code: -5, message: 'no' }
  expect(() => resultOf(answerOf({ error, status: 404 }))).toThrow(expect.objectContaining({ name: 'ServerError', ...error }))
  for (const bad of [{ code: 1.5, message: 'no' }, { code: -5 }, { code: -5, message: 7 }, undefined])
    expect(() => resultOf(answerOf({ ...(bad && { error: bad }) }))).toThrow(expect.objectContaining({ kind: 'bad_response' }))
})

const OWN = { list: {} }
const EXTENSION = { extensions: { [TASKS]: {} } }
test.each<[object, Revision, boolean, object]>([
  [{ tools: {}, tasks: OWN }, '2025-11-25', true, { tools: {}, tasks: OWN }],
  [{ tools: {}, tasks: OWN }, '2025-06-18', true, { tools: {} }],
  [{ tools: {}, tasks: OWN }, MODERN, true, { tools: {}, ...EXTENSION }],
  [{ tools: {}, tasks: OWN }, '2025-11-25', false, { tools: {} }],
  [{ tools: {}, tasks: OWN }, MODERN, false, { tools: {} }],
  [EXTENSION, MODERN, true, EXTENSION],
  [EXTENSION, '2025-11-25', true, { tasks: TASKS_CAPABILITY }],
  [EXTENSION, '2025-11-25', false, {}],
  [{ extensions: { 'x/y': { z: 1 } } }, '2025-11-25', true, { extensions: { 'x/y': { z: 1 } } }],
  [{ extensions: {} }, MODERN, true, { extensions: {} }],
  [{ extensions: 7, tasks: 7 }, MODERN, true, {}],
])('B277 at a bridge %j is declared to a host of %s (tasks: %s) as %j', (capabilities, host, tasks, expected) => {
  expect(bridgedCapabilities(capabilities as Readonly<Record<string, unknown>>, host, tasks)).toEqual(expected)
})

test('client credentials are declared to a server exactly where they are used there', () => {
  const key = 'io.modelcontextprotocol/oauth-client-credentials'
  const other = { roots: {}, extensions: { 'x/y': {} } }
  const declared = { roots: {}, extensions: { 'x/y': {}, [key]: { of: 'the host' } } }
  expect(withClientCredentials(other, false)).toBe(other)
  expect(withClientCredentials(declared, false)).toEqual(other)
  for (const capabilities of [other, declared])
    expect(withClientCredentials(capabilities, true)).toEqual({ roots: {}, extensions: { 'x/y': {}, [key]: {} } })
  expect(withClientCredentials({}, true)).toEqual({ extensions: { [key]: {} } })
})
