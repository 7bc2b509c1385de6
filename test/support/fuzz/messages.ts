/** Parsers of messages: JSON, JSON-RPC, headers. The second reader is always `JSON.parse`. */
import { isUtf8 } from 'node:buffer'
import { readInitialize } from '../../../src/era/host/legacy-host.ts'
import { Refusal } from '../../../src/rpc/call.ts'
import { canonical } from '../../../src/wire/message/canonical.ts'
import { EnvelopeError, readHostMessage, readServerMessage, splitBatch } from '../../../src/wire/message/envelope.ts'
import type { Envelope } from '../../../src/wire/message/envelope.ts'
import { decodeHeaderValue, encodeHeaderValue } from '../../../src/wire/headers/header-value.ts'
import { readParamHeaders, withoutBadAnnotations } from '../../../src/wire/headers/param-headers.ts'
import { Scanner } from '../../../src/wire/json/scan.ts'
import { ScanError } from '../../../src/wire/json/scan-error.ts'
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

/** Members on which we decide or which we write, said another way than in `src/wire/protocol/deciding-keys.ts`: by their paths. */
const DECIDING: Readonly<Record<string, readonly string[]>> = {
  '': ['jsonrpc', 'id', 'method', 'params', 'result', 'error'],
  params: ['name', 'uri', 'arguments', 'cursor', 'taskId', 'requestState', '_meta', 'ref', 'task'],
  'params._meta': ['progressToken', 'io.modelcontextprotocol/protocolVersion', 'io.modelcontextprotocol/clientCapabilities'],
  'params.ref': ['type', 'name', 'uri'],
  result: ['resultType', '_meta', 'content', 'structuredContent', 'requestState', 'ttlMs'],
  error: ['code', 'message', 'data'],
}
const TOKEN = /\s*("(?:[^"\\]|\\.)*"|[{}[\],:]|[^\s{}[\],:"]+)/gsy

/** Every key of checked JSON with the path of its object, repeated ones too: what a reader sees that takes the first, or any. */
const keysOf = (text: string): { path: string; key: string }[] => {
  const tokens = Array.from(text.matchAll(TOKEN), (match) => match[1] ?? '')
  const found: { path: string; key: string }[] = []
  const walk = (at: number, path: string): number => {
    const open = tokens[at]
    if (open !== '{' && open !== '[') return at + 1
    let next = at + 1
    while (tokens[next] !== '}' && tokens[next] !== ']') {
      if (tokens[next] === ',') next++
      const key = open === '{' ? (JSON.parse(tokens[next] ?? '') as string) : '0'
      if (open === '{') found.push({ path, key })
      next = walk(open === '{' ? next + 2 : next, path === '' ? key : `${path}.${key}`)
    }
    return next + 1
  }
  walk(0, '')
  return found
}

/** However a reader picks members (first or last, in any case), it picks what we decided on (B269, B270). */
const isCertain = (text: string): void => {
  const keys = keysOf(text)
  for (const [path, names] of Object.entries(DECIDING)) {
    const here = keys.filter((each) => each.path === path).map(({ key }) => key)
    for (const name of names) {
      const anyCase = new RegExp(`^${name.replaceAll('.', '\\.')}$`, 'iu')
      const alike = here.filter((key) => anyCase.test(key))
      must(alike.length <= 1 && alike.every((key) => key === name), `is certain of ${path} ${name}`)
    }
  }
}

/** Text without what may stand before it. */
const withoutMark = (bytes: Buffer): Buffer => (bytes.toString().startsWith('\ufeff') ? bytes.subarray(3) : bytes)
const isGiven = (value: unknown): boolean => value !== undefined && value !== null

/** The same message by another way: what JSON-RPC 2.0 asks of the values, nothing of the bytes; null is absent. */
const agrees = ({ kind, id, method, params, result, error }: Envelope, bytes: Buffer, isFromServer: boolean): void => {
  const text = withoutMark(bytes)
  const message = parse(text) as Record<string, unknown>
  isCertain(text.toString())
  same(message['jsonrpc'], '2.0')
  if (id !== undefined || message['id'] !== null) {
    const ours: unknown = id && JSON.parse(id)
    // An id of ours may come back as text (B288).
    if (isFromServer && kind === 'response') same(String(ours), String(message['id']))
    else same(ours, message['id'])
  }
  same(kind, isGiven(message['method']) ? ('id' in message ? 'request' : 'notification') : 'response')
  if (kind !== 'response') same(method, message['method'])
  for (const [name, payload] of Object.entries({ params, result, error })) {
    if (payload !== undefined) same(parse(Buffer.concat(payload.parts())), message[name])
    else must(!isGiven(message[name]) || (kind === 'response' && name === 'params'), `leaves out ${name} only where it is null`)
  }
}

const ANY_MEMBERS = ['"x":1', '"x":2', '"X":{"a":1,"a":2}', '"caf\\u00e9":1', '"café":[]', '"__proto__":{}']
/** What stands in an object, by its path: legal spellings and what is refused, picked by the bytes of the input. */
const MEMBERS: Readonly<Record<string, readonly string[]>> = {
  '': String.raw`"id":7 "id":"41" "id":41.0 "i\u0064":8 "ID":9 "id":null "method":"tools\/call" "method":null "Method":"x"
    "params":null "params":{} "Params":{} "result":null "result":{} "error":null "error":{} "x":1 "ſx":1`.split(/\s+/),
  params: [
    ...ANY_MEMBERS,
    ...String.raw`"name":"a" "n\u0061me":"b" "Name":"c" "arguments":{} "argumentſ":{} "taſK":1 "cursor":null
      "_meta":{} "_META":{} "ref":{} "REF":1`.split(/\s+/),
  ],
  'params._meta': [
    ...ANY_MEMBERS,
    ...String.raw`"progressToken":1 "progress\u0054oken":2 "ProgressToken":3 "progreſsToken":4
      "io.modelcontextprotocol\/protocolVersion":"2026-07-28" "io.modelcontextprotocol/protocolVersion":"2025-11-25"
      "io.modelcontextprotocol/ProtocolVersion":1`.split(/\s+/),
  ],
  'params.ref': [
    ...ANY_MEMBERS,
    ...String.raw`"type":"ref/prompt" "name":"x" "NAME":"y" "uri":"x:y" "u\u0072i":"x:z"`.split(/\s+/),
  ],
  result: [
    ...ANY_MEMBERS,
    ...String.raw`"resultType":"complete" "ResultType":"task" "result\u0054ype":"x" "content":[] "_meta":{}
      "structuredContent":null`.split(/\s+/),
  ],
  error: [...ANY_MEMBERS, ...String.raw`"code":1 "Code":2 "message":"m" "data":{"a":1,"A":2,"a":3}`.split(/\s+/)],
}
const MAX_MEMBERS = 6

/** A message that is JSON, and mostly one of the protocol, built from the members that the bytes of the input pick. */
const built = (input: Buffer): Buffer => {
  let at = 0
  const pick = (count: number): number => ((input[at % Math.max(1, input.length)] ?? 0) + at++) % count
  const objectAt = (path: string): string => {
    const members = MEMBERS[path] ?? []
    const picked = Array.from({ length: pick(MAX_MEMBERS) }, () => members[pick(members.length)] ?? '').map((member) =>
      member.replace(/^"(\w+)":\{\}$/, (whole, key: string) => {
        const inner = path === '' ? key : `${path}.${key}`
        return inner in MEMBERS ? `"${key}":${objectAt(inner)}` : whole
      }),
    )
    return `{${(path === '' ? ['"jsonrpc":"2.0"', ...picked] : picked).join()}}`
  }
  return Buffer.from(`${pick(8) === 0 ? '\ufeff' : ''}${objectAt('')}`)
}

const checkMessage = (input: Buffer): void => {
  for (const read of [(bytes: Buffer) => readHostMessage(bytes, LIMITS), readServerMessage]) {
    const isFromServer = read === readServerMessage
    const got = outcome(() => read(input))
    if ('value' in got) {
      agrees(got.value, input, isFromServer)
      const introduced = outcome(() => readInitialize(got.value, { min: '2024-11-05', max: '2026-07-28' }))
      if ('error' in introduced) must(introduced.error instanceof Refusal, 'throws Refusal and nothing else')
    } else {
      must(got.error instanceof EnvelopeError, 'throws EnvelopeError and nothing else')
      if (got.error.code === -32700 && !isFromServer) must(!isJson(withoutMark(input)), 'calls no JSON malformed')
    }
  }
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
    '"params":null',
    '"result":null',
    '"error":null',
    '"method":null',
    '"id":"41"',
    '"id":41.0',
    '"params":{',
    '"result":{',
    '"_meta":{',
    '"ref":{',
    '"name":"a"',
    '"Name":"b"',
    '"n\\u0061me":"c"',
    '"argument\u017f":1',
    '"ta\\u017f\\u212a":1',
    '"arguments":{"a":1,"A":2,"a":3}',
    '"progressToken":1',
    '"Progre\u017f\u017ftoken":1',
    '"io.modelcontextprotocol\\/protocolVersion":"2026-07-28"',
    '"io.modelcontextprotocol/protocolVersion":"2026-07-28"',
    '"caf\\u00e9":1',
    '"café":1',
    '"code":1,"message":"m"',
    '"data":{"a":1,"a":2}',
  ],
  check: (input) => {
    checkMessage(input)
    checkMessage(built(input))
    const batch = outcome(() => splitBatch(input, LIMITS))
    if ('error' in batch) must(batch.error instanceof EnvelopeError, 'throws EnvelopeError and nothing else')
    else if (batch.value !== undefined && isUtf8(input)) same(batch.value.map(parse), parse(withoutMark(input)))
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
