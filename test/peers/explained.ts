/**
 * What differs between a direct pair and the same pair through Trunkline, and why it may: each row is a decision of the bridging
 * specification, not of a test. Everything else that differs is a defect.
 */
import { cellName } from './run.ts'
import type { Observation } from './run.ts'

/** One place in two transcripts that is not the same. */
export interface Difference {
  /** Such as `result.tools.0.name`. */
  readonly path: string
  readonly direct: unknown
  readonly through: unknown
}

interface Explanation {
  readonly rule: string
  readonly reason: string
  readonly covers: (difference: Difference, observation: Observation) => boolean
}

const text = (value: unknown): string => (typeof value === 'string' ? value : JSON.stringify(value ?? ''))

const isCutOff = (transcript: unknown): boolean => /Not connected|Connection closed/.test(text(transcript))

/** Whether these are members of `_meta` that name who answers, or what is beside the server's own. */
const namesTheAnswerer = ({ path, direct, through }: Difference): boolean => {
  const keys = (value: unknown): string[] => Object.keys(value ?? {})
  const isOurs = (key: string): boolean => key === 'io.modelcontextprotocol/serverInfo' || key.startsWith('dev.trunkline/')
  if (/(^|\.)_meta$/.test(path)) return [...keys(direct), ...keys(through)].every(isOurs)
  return isOurs(/(?:^|\.)_meta\.(.+)$/.exec(path)?.[1]?.replace(/\/serverInfo\..*$/, '/serverInfo') ?? '')
}

export const EXPLANATIONS: readonly Explanation[] = [
  {
    rule: '2.1',
    reason: 'The merged endpoint has its own name, the capabilities of all servers, and their instructions in sections',
    covers: ({ path, direct, through }, { way, scenario }) =>
      way === 'merged' &&
      scenario === 'connect' &&
      (path.startsWith('result.serverInfo') ||
        (path.startsWith('result.capabilities') && (direct === undefined || direct === false)) ||
        (/^result.capabilities.(experimental|sampling|elicitation|roots)$/.test(path) && through === undefined) ||
        (path === 'result.instructions' && text(through).includes(text(direct)))),
  },
  {
    rule: '1.2',
    reason:
      'Trunkline speaks every revision: a host that prefers the newest finds 2026-07-28, whichever revision the server speaks',
    covers: ({ path }, { scenario, isModern }) =>
      scenario === 'connect' &&
      (path === 'result.protocolVersion' || (isModern.through && path.startsWith('result.capabilities'))),
  },
  {
    rule: '1.2',
    reason: 'Host and server are limited to different revisions: they work together only through Trunkline',
    covers: (_, { scenario, cell, direct, through }) =>
      scenario === 'connect' &&
      (cell.host.option !== undefined || cell.server.option !== undefined) &&
      'error' in (direct as object) &&
      'result' in (through as object),
  },
  {
    rule: 'B035',
    reason:
      'The first handshake does not wait for servers: a server whose very first start takes longer than `timeouts.handshake_budget` has its instructions in later handshakes',
    covers: ({ path, through }, { way, scenario, cell }) =>
      way === 'merged' &&
      scenario === 'connect' &&
      (cell.transport === 'stdio' || cell.bridge !== undefined || cell.server.language === 'program') &&
      path === 'result.instructions' &&
      (through ?? null) === null,
  },
  {
    rule: 'B043',
    reason: 'Members that each era adds to all results, and the name of the answering program',
    covers: (difference, { isModern }) =>
      namesTheAnswerer(difference) || (isModern.direct !== isModern.through && /(^|\.)resultType$/.test(difference.path)),
  },
  {
    rule: 'B106',
    reason: 'Legacy revisions have no caching hints',
    covers: ({ path }, { isModern }) => !(isModern.direct && isModern.through) && /(^|\.)(ttlMs|cacheScope)$/.test(path),
  },
  {
    rule: 'B103, B104',
    reason: 'A missing resource is `-32002` to legacy hosts and `-32602` with `data.uri` to modern ones',
    covers: ({ path }, { scenario }) => scenario === 'resources: read what is not there' && path.startsWith('error.'),
  },
  {
    rule: '3.10',
    reason: 'Progress must increase: progress that mcp-go sends out of order is dropped',
    covers: ({ path }, { scenario, cell }) =>
      scenario === 'call: progress' && cell.server.key === 'go-mcpgo' && path.startsWith('progress'),
  },
  {
    rule: 'B285',
    reason: 'A list is read again at most once a second (`cache.fresh`) if the server announces no change, such as FastMCP 4',
    covers: ({ path }, { scenario, cell }) =>
      scenario === 'tools: list_changed' && cell.server.key === 'python-fastmcp4' && /^(during|after|called)/.test(path),
  },
  {
    rule: 'B280',
    reason:
      'Hosts on SDK 1.1 and 2.0 of Java end a line of an event stream at U+2028, which servers write unescaped: this fails directly and works through Trunkline, in a JSON reply',
    covers: (_, { cell, direct }) =>
      ['java-1.1', 'java-2.0'].includes(cell.host.key) && text(direct).includes('UnexpectedEndOfInput'),
  },
  {
    rule: 'B107',
    reason:
      'Hosts on SDK 2.1 of Java use 2024-11-05 over HTTP+SSE, which has neither audio nor links: both arrive as text, although this SDK could read them',
    covers: ({ path }, { cell, scenario }) =>
      cell.host.key === 'java-2.1' &&
      cell.transport === 'sse' &&
      scenario === 'call: blocks of each type' &&
      /^result\.content\.[23]\./.test(path),
  },
  {
    rule: 'B281',
    reason:
      'Hosts on SDK 1.1 and 2.0 of Java do not support the `retry:` line with which servers begin a stream: this fails directly and works through Trunkline',
    covers: (_, { cell, scenario, direct }) =>
      ['java-1.1', 'java-2.0'].includes(cell.host.key) && scenario === 'connect' && text(direct).includes('Line: retry:'),
  },
  {
    rule: '7.2',
    reason: 'The connection of the direct pair broke during an answer; through Trunkline the answer arrived',
    covers: (_, { cell, direct, through }) =>
      cell.host.language === 'java' &&
      (direct as { error?: { kind?: string } }).error?.kind === 'EOFException' &&
      !text(through).includes('EOFException'),
  },
  {
    rule: 'B072',
    reason:
      'A server on the SDK of Go with `KeepAlive` pings over stdio in 2026-07-28, too, and hosts on SDK 2 of TypeScript do not answer: it ends directly, and continues through Trunkline',
    covers: (_, { cell, direct, through }) =>
      cell.server.option === 'KeepAlive' &&
      cell.host.key === 'typescript-2' &&
      cell.transport === 'stdio' &&
      isCutOff(direct) &&
      !isCutOff(through),
  },
  {
    rule: '5.3',
    reason: 'A host on the SDK of Go with `KeepAlive` ends its session when a ping is not answered while Trunkline starts again',
    covers: (_, { scenario, cell, through }) =>
      scenario === 'restart of the gateway' && cell.host.option === 'KeepAlive' && text(through).includes('client is closing'),
  },
  {
    rule: '3.7',
    reason:
      'In 2026-07-28 a resource is watched from the acknowledgement on. Hosts on the SDK of Go do not wait for it: the server may be called before it has the subscription',
    covers: ({ path }, { scenario, cell, isModern }) =>
      scenario === 'resources: subscribe, update, unsubscribe' &&
      path === 'told' &&
      cell.host.language === 'go' &&
      isModern.through,
  },
  {
    rule: 'B094',
    reason: '2025-06-18 has no `mode` of elicitation: hosts of that revision are asked without it',
    covers: ({ path, direct }, { cell }) =>
      cell.host.option?.startsWith('2025-06-18') === true && /^asked\.\d+\.params\.mode$/.test(path) && direct === 'form',
  },
  {
    rule: 'B295',
    reason:
      'Over HTTP+SSE a host loses its connection at a restart of any server, unless it opens its stream again. SDKs of Python, Go and Java do not',
    covers: (_, { scenario, cell }) => scenario === 'restart of the gateway' && cell.transport === 'sse',
  },
  {
    rule: '3.9',
    reason: 'Trunkline subscribes itself: a host gets announcements also where it keeps no stream of its own open',
    covers: ({ path, direct }) => path === 'told' && direct === false,
  },
  {
    rule: '2.2',
    reason: 'Log messages name their server',
    covers: ({ path, direct, through }, { way }) =>
      way === 'merged' && path.endsWith('.logger') && through === `peer/${text(direct)}`,
  },
  {
    rule: '3.11',
    reason: 'Trunkline applies the level of log messages, also for a server that accepts none',
    covers: ({ path }, { way, scenario }) => way === 'merged' && scenario.includes('log messages') && path.startsWith('level.'),
  },
  {
    rule: '3.11',
    reason: '2026-07-28 has no `logging/setLevel`: messages arrive with requests that ask for them',
    covers: ({ path }, { scenario, isModern }) =>
      isModern.through && scenario.includes('log messages') && (path.startsWith('level.') || path.startsWith('messages')),
  },
  {
    rule: '1.2',
    reason: '2026-07-28 has no `ping`',
    covers: (_, { scenario, isModern }) => isModern.through && scenario === 'ping',
  },
  {
    rule: '2.3',
    reason: 'Ids of elicitations are Trunkline’s own at the merged endpoint, and 2026-07-28 has none',
    covers: ({ path, through }, { isModern }) =>
      path.endsWith('.elicitationId') && (typeof through === 'string' || isModern.through),
  },
  {
    rule: '3.12',
    reason:
      'A host that declares elicitation without `url` is not asked to open a page; servers that do not check this ask directly',
    covers: ({ path }, { scenario, cell }) =>
      scenario === 'elicitation: URL' && ['go-mcpgo', 'go-sdk1.0'].includes(cell.host.key) && /^(answer|asked)/.test(path),
  },
  {
    rule: '3.12',
    reason: '2026-07-28 has no `-32042`: the error of the server is in `data.original`',
    covers: ({ path, direct, through }, { scenario, isModern }) =>
      isModern.through &&
      scenario === 'call: error with code and data' &&
      path.startsWith('error.') &&
      (direct === -32042 || through === -32603 || path.startsWith('error.data')),
  },
  {
    rule: 'B139',
    reason: 'In the legacy revisions a closed connection is not a cancellation; mcp-go sends no other cancellation over HTTP',
    covers: ({ path }, { scenario, cell, isModern }) =>
      scenario === 'call: cancelled by the host' &&
      cell.host.key === 'go-mcpgo' &&
      cell.transport === 'http' &&
      !isModern.through &&
      path.startsWith('seen.'),
  },
  {
    rule: '3.1, 7.3',
    reason:
      'A server without completion refuses it with `-32601`: the merged endpoint offers completion for all servers, and has no values for this one',
    covers: ({ path, direct, through }, { way, scenario }) =>
      way === 'merged' &&
      scenario.startsWith('completion') &&
      ((/(^|\.)error$/.test(path) && text(direct).includes('"code":-32601') && through === undefined) ||
        (/(^|\.)result$/.test(path) && direct === undefined && text(through).includes('"completion":{"values":[]}'))),
  },
  {
    rule: '7.3, B287',
    reason:
      'A server refuses a call or a completion with `-32601`: the merged endpoint has the method, so the server’s error is in `data.original`',
    covers: ({ path }, { way, direct, through }) =>
      way === 'merged' &&
      /(^|\.)error\.(code|message|data)/.test(path) &&
      text(direct).includes('"code":-32601') &&
      /"original":\{"code":-32601,/.test(text(through)),
  },
  {
    rule: '2.5',
    reason:
      'supergateway as a stdio server numbers requests itself and relays cancellations with the original id: both are equal only if the host numbers in the same way, as that of TypeScript does',
    covers: ({ path }, { scenario, cell }) =>
      scenario === 'call: cancelled by the host' && cell.bridge === 'supergateway (server)' && path.startsWith('seen.'),
  },
  {
    rule: 'B285',
    reason:
      'supergateway as a stdio server relays no list announcements: a list is read again at most once a second (`cache.fresh`), and the known list is served while the server restarts',
    covers: ({ path }, { scenario, cell }) =>
      cell.bridge === 'supergateway (server)' &&
      ((scenario === 'tools: list_changed' && /^(during|after|called)/.test(path)) || scenario === 'default host: tools'),
  },
  {
    rule: 'B285',
    reason:
      'mcp-proxy relays no list announcements: a list is read again at most once a second (`cache.fresh`), and the known list is served while the server restarts',
    covers: ({ path }, { scenario, cell }) =>
      (cell.bridge === 'mcp-proxy (server)' || cell.server.key === 'mcp-proxy-http') &&
      ((scenario === 'tools: list_changed' && /^(during|after|called)/.test(path)) ||
        (scenario === 'restart of the gateway' && path.startsWith('listed')) ||
        scenario === 'default host: tools'),
  },
  {
    rule: '3.12',
    reason: 'mcp-proxy declares nothing to the server and refuses its requests; Trunkline refuses them itself, with its own text',
    covers: ({ path }, { way, scenario, cell }) =>
      way === 'merged' &&
      cell.bridge === 'mcp-proxy (host)' &&
      /^(elicitation|sampling|roots)/.test(scenario) &&
      path.startsWith('answer.'),
  },
  {
    rule: 'B287',
    reason:
      'Two lists of terraform-mcp-server fail at every request: such a list is empty at the merged endpoint, and at the bridge until the server has started',
    covers: (_, { scenario, cell, through }) =>
      cell.server.key === 'terraform-mcp-server' &&
      /^resource(s|Templates): list/.test(scenario) &&
      Array.isArray((through as { result?: unknown }).result),
  },
  {
    rule: '3.12',
    reason: 'If a host declares nothing, Trunkline refuses the question itself, with its own text',
    covers: ({ path }, { scenario }) => /^default host: (elicitation|sampling)$/.test(scenario) && /^(answer|asked)\./.test(path),
  },
]

/** All places where two transcripts differ. */
export const differencesOf = (direct: unknown, through: unknown, path = ''): Difference[] => {
  if (Object.is(direct, through)) return []
  if (typeof direct !== 'object' || typeof through !== 'object' || direct === null || through === null)
    return [{ path, direct, through }]
  if (Array.isArray(direct) !== Array.isArray(through)) return [{ path, direct, through }]
  const [from, to] = [direct as Record<string, unknown>, through as Record<string, unknown>]
  const keys = new Set([...Object.keys(from), ...Object.keys(to)])
  return [...keys].flatMap((key) => differencesOf(from[key], to[key], path === '' ? key : `${path}.${key}`))
}

export interface Judged {
  readonly observation: Observation
  readonly explained: readonly { readonly difference: Difference; readonly explanation: Explanation }[]
  /** Losses: differences that nothing explains. */
  readonly lost: readonly Difference[]
}

export const judge = (observation: Observation): Judged => {
  const explained: { difference: Difference; explanation: Explanation }[] = []
  const lost: Difference[] = []
  for (const difference of differencesOf(observation.direct, observation.through)) {
    const explanation = EXPLANATIONS.find(({ covers }) => covers(difference, observation))
    if (explanation === undefined) lost.push(difference)
    else explained.push({ difference, explanation })
  }
  return { observation, explained, lost }
}

/** One line per loss. */
export const lossesOf = ({ observation: { cell, way, scenario }, lost }: Judged): string[] =>
  lost.map(
    ({ path, direct, through }) =>
      `${cellName(cell)}, ${way}, ${scenario}: ${path}: ${text(direct).slice(0, 300)} became ${text(through).slice(0, 300)}`,
  )
