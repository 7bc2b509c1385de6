/** Parsers of messages: JSON, JSON-RPC, headers. The second reader is always `JSON.parse`. */
import { isUtf8 } from 'node:buffer'
import { readInitialize } from '../../../src/era/legacy-host.ts'
import { Refusal } from '../../../src/rpc/call.ts'
import { canonical } from '../../../src/wire/canonical.ts'
import { EnvelopeError, readHostMessage, readServerMessage, splitBatch } from '../../../src/wire/envelope.ts'
import type { Envelope } from '../../../src/wire/envelope.ts'
import { decodeHeaderValue, encodeHeaderValue } from '../../../src/wire/header-value.ts'
import { readParamHeaders, withoutBadAnnotations } from '../../../src/wire/param-headers.ts'
import { Scanner } from '../../../src/wire/scan.ts'
import { ScanError } from '../../../src/wire/scan-error.ts'
import { must, outcome, same } from './target.ts'
import type { Target } from './target.ts'

const LIMITS = { maxDepth: 64, maxValues: 10_000, maxKeysPerObject: 1_000 }
const JSON_WORDS = [
  '{',
  '}',
  '[',
  ']',
  ',',
  ':',
  '"',
  '\\',
  '\\u0041',
  '\\ud800',
  '1',
  '-0',
  '1e5',
  '1.0',
  '01',
  '9007199254740993',
  'true',
  'false',
  'null',
  '"a"',
  '"\\""',
  ' ',
  '\n',
  '\t',
  '{"a":1}',
  '[1,2]',
  '"__proto__":1',
  '\ufeff',
  '\u2028',
  'NaN',
  '//',
]
const parse = (bytes: Buffer): unknown => JSON.parse(bytes.toString()) as unknown
const isJson = (bytes: Buffer): boolean => isUtf8(bytes) && 'value' in outcome(() => parse(bytes))

const scan = (bytes: Buffer, strict: boolean): void => {
  const scanner = new Scanner(bytes, { strict, limits: LIMITS })
  scanner.skip()
  scanner.expectEnd()
}

const scanner: Target = {
  name: 'JSON scanner',
  words: JSON_WORDS,
  check: (input) => {
    const scanned = outcome(() => scan(input, true))
    if ('error' in scanned) {
      must(scanned.error instanceof ScanError, 'throws ScanError and nothing else')
      if (scanned.error.kind === 'syntax') must(!isJson(input), 'refuses no JSON')
      return
    }
    if (!isUtf8(input)) return
    const value = parse(input)
    const text = canonical(input)
    same(JSON.parse(text), value)
    same(canonical(Buffer.from(text)), text)
  },
}

/** The same message by another way: what JSON-RPC 2.0 asks of the values, nothing of the bytes. */
const agrees = ({ kind, id, method, params, result, error }: Envelope, bytes: Buffer): void => {
  const message = parse(bytes) as Record<string, unknown>
  same(message['jsonrpc'], '2.0')
  if (id !== undefined || message['id'] !== null) same(id && JSON.parse(id), message['id'])
  same(kind, 'method' in message ? ('id' in message ? 'request' : 'notification') : 'response')
  if (kind !== 'response') same(method, message['method'])
  for (const [name, payload] of Object.entries({ params, result, error }))
    if (payload !== undefined) same(parse(Buffer.concat(payload.parts())), message[name])
}

const validator: Target = {
  name: 'JSON-RPC validator',
  words: [
    ...JSON_WORDS,
    '{"jsonrpc":"2.0",',
    '"jsonrpc":"2.0"',
    '"id":1',
    '"id":"x"',
    '"id":null',
    '"method":"tools/call"',
    '"method":"initialize"',
    '"params":{"name":"x"}',
    '"params":{"protocolVersion":"2025-11-25","capabilities":{}}',
    '"result":{}',
    '"error":{"code":1,"message":"m"}',
    '"Method":"x"',
    '"\\u0069d":2',
    '"params":[]',
  ],
  check: (input) => {
    for (const read of [(bytes: Buffer) => readHostMessage(bytes, LIMITS), readServerMessage]) {
      const got = outcome(() => read(input))
      if ('value' in got) {
        agrees(got.value, input)
        const introduced = outcome(() => readInitialize(got.value, { min: '2024-11-05', max: '2026-07-28' }))
        if ('error' in introduced) must(introduced.error instanceof Refusal, 'throws Refusal and nothing else')
      } else {
        must(got.error instanceof EnvelopeError, 'throws EnvelopeError and nothing else')
        if (got.error.code === -32700 && read !== readServerMessage) must(!isJson(input), 'calls no JSON malformed')
      }
    }
    const batch = outcome(() => splitBatch(input, LIMITS))
    if ('error' in batch) must(batch.error instanceof EnvelopeError, 'throws EnvelopeError and nothing else')
    else if (batch.value !== undefined && isUtf8(input)) same(batch.value.map(parse), parse(input))
  },
}

const headers: Target = {
  name: 'Mcp headers',
  words: [
    '=?base64?',
    '?=',
    'SGVsbG8=',
    'SGVsbG8',
    'YQ',
    'YQ==',
    '====',
    ' ',
    '\t',
    'plain',
    'é',
    '{"type":"object","properties":{',
    '"a":{"type":"string","x-mcp-header":"A"}',
    '}}',
    '"x-mcp-header":',
    '"type":"integer"',
    ',',
    '"a":{',
    '}',
  ],
  check: (input) => {
    const text = input.toString().toWellFormed()
    const value = encodeHeaderValue(text)
    must(/^(?![\t ])[\t\x20-\x7e]*(?<![\t ])$/.test(value), 'writes safe header values')
    same(decodeHeaderValue(value), text)
    const decoded = decodeHeaderValue(input.toString('latin1'))
    if (decoded !== undefined) same(decodeHeaderValue(encodeHeaderValue(decoded)), decoded)
    if (!isJson(input) || 'error' in outcome(() => scan(input, true))) return
    readParamHeaders(input)
    const tool = Buffer.from(`{"name":"x","inputSchema":${input.toString()}}`)
    const clean = withoutBadAnnotations(tool)
    const schema = JSON.stringify((parse(clean) as { inputSchema: unknown }).inputSchema)
    must('headers' in readParamHeaders(Buffer.from(schema)), 'leaves no bad annotation')
  },
}

export const messageTargets: readonly Target[] = [scanner, validator, headers]
