/** Which pairs are run: every SDK as a server and as a host, beside the SDKs of TypeScript and beside itself. */
import { KEPT_ALIVE_MS, only, TYPESCRIPT_1, TYPESCRIPT_2, withKeepAlive } from './languages.ts'
import type { Command, Language, Sdk, Transport } from './languages.ts'
import type { Way } from './run.ts'
import { keptAlive, SCENARIOS } from './scenarios.ts'
import type { Scenario } from './scenarios.ts'

/** One server over one transport, the hosts that connect to it, and the ways through Trunkline. */
export interface Group {
  readonly server: Sdk
  readonly transport: Transport
  readonly hosts: readonly Sdk[]
  readonly ways: readonly Way[]
  /** What is played, where it is not the table of all peers: real programs have tools of their own. */
  readonly scenarios?: readonly Scenario[]
  /** What the server prints on stdout beside its messages; `trunkline logs` shows it. */
  readonly prints?: string
  /** A program between host and server that speaks stdio on one side and knows a URL on the other; over `http` and `sse` only. */
  readonly bridge?: Bridge
}

export interface Bridge {
  readonly name: string
  /** `host`: between the host and Trunkline; `server`: between Trunkline and the server. */
  readonly side: 'host' | 'server'
  /** The command with which it is started for a URL. */
  readonly command: (url: string) => Command | Promise<Command>
}

const within = (hosts: readonly Sdk[], transport: Transport): readonly Sdk[] =>
  hosts.filter(({ connects }) => connects.includes(transport))

/** All pairs of one SDK. */
export const everyGroup = (sdk: Sdk): readonly Group[] => [
  ...sdk.serves.map((transport) => ({
    server: sdk,
    transport,
    hosts: within([sdk, TYPESCRIPT_1, TYPESCRIPT_2], transport),
    ways: ['merged', 'alone'] as const,
  })),
  ...[TYPESCRIPT_1, TYPESCRIPT_2].flatMap((server) =>
    server.serves.map((transport) => ({
      server,
      transport,
      hosts: within([sdk], transport),
      ways: ['merged', 'alone'] as const,
    })),
  ),
]

/** The pairs of some SDKs that are run with all other tests: each transport, each side and each way. What they share is started once. */
export const fewGroups = (sdks: readonly Sdk[]): readonly Group[] => {
  const groups = new Map<string, Group>()
  for (const group of sdks.flatMap(fewGroupsOf)) {
    const key = `${group.server.key} ${group.transport} ${group.ways.join()}`
    groups.set(key, { ...group, hosts: [...(groups.get(key)?.hosts ?? []), ...group.hosts] })
  }
  return [...groups.values()]
}

const fewGroupsOf = (sdk: Sdk): readonly Group[] => {
  const rows: readonly (readonly [server: Sdk, transport: Transport, host: Sdk, way: Way])[] = [
    // A program in Python takes seconds to start, and every session starts one: one SDK stands for all over stdio.
    ...(sdk.language !== 'python' || sdk.key === 'python-mcp1' ? [[sdk, 'stdio', TYPESCRIPT_2, 'alone'] as const] : []),
    [sdk, 'http', sdk, 'merged'],
    [TYPESCRIPT_2, 'http', sdk, 'alone'],
    [TYPESCRIPT_1, sdk.connects.includes('sse') ? 'sse' : 'stdio', sdk, 'merged'],
  ]
  return rows
    .filter(([server, transport, host]) => server.serves.includes(transport) && host.connects.includes(transport))
    .map(([server, transport, host, way]) => ({ server, transport, hosts: [host], ways: [way] }))
}

const MODERN = '2026-07-28'
const LEGACY = '2025-06-18'
/** Of the one table, what depends on the era, or on a session that lasts. */
const OPTION_SCENARIOS = SCENARIOS.filter(({ name }) =>
  /^(\w+: list, every|call: (text|structured|error with|progress|log|cancelled)|tools: list_changed|resources: (read what|subscribe)|completion|elicitation: form|sampling|ping|restart)/.test(
    name,
  ),
)

/** Pairs of SDKs with options that their users set: `KeepAlive`, and one revision only. They run with all other tests. */
export const optionGroups = (language: Language, sdks: readonly Sdk[]): readonly Group[] => {
  const named = (key: string): Sdk[] => sdks.filter((sdk) => sdk.key === key)
  const pinned = (server: Sdk, transport: Transport, hosts: readonly Sdk[], way: Way): Group => ({
    server,
    transport,
    hosts,
    ways: [way],
    scenarios: OPTION_SCENARIOS,
  })
  if (language === 'go')
    return named('go-sdk1.8').flatMap((sdk) => {
      const alive = withKeepAlive(sdk)
      return [
        ...(['stdio', 'http'] as const).map((transport) => ({
          server: alive,
          transport,
          hosts: [TYPESCRIPT_1, TYPESCRIPT_2, alive],
          ways: ['alone'] as const,
          scenarios: [keptAlive(KEPT_ALIVE_MS), ...OPTION_SCENARIOS],
        })),
        pinned(only(sdk, MODERN), 'stdio', [TYPESCRIPT_2, sdk], 'merged'),
        pinned(only(sdk, MODERN), 'http', [TYPESCRIPT_1, sdk], 'alone'),
        pinned(only(sdk, LEGACY), 'stdio', [only(TYPESCRIPT_2, MODERN), sdk], 'alone'),
        pinned(only(sdk, LEGACY), 'http', [TYPESCRIPT_2, only(sdk, LEGACY)], 'merged'),
        pinned(only(TYPESCRIPT_2, MODERN), 'stdio', [only(sdk, LEGACY)], 'merged'),
        // Its host takes a revision as the one to begin with: the newest is no choice of one.
        pinned(TYPESCRIPT_2, 'http', [only(sdk, LEGACY)], 'merged'),
      ]
    })
  if (language === 'python')
    return named('python-mcp2').flatMap((sdk) => [
      pinned(TYPESCRIPT_2, 'http', [only(sdk, MODERN), only(sdk, 'legacy')], 'merged'),
      pinned(TYPESCRIPT_1, 'stdio', [only(sdk, MODERN)], 'alone'),
      pinned(only(TYPESCRIPT_2, LEGACY), 'http', [sdk], 'alone'),
      pinned(sdk, 'http', [only(TYPESCRIPT_2, MODERN), only(TYPESCRIPT_2, LEGACY)], 'alone'),
    ])
  return []
}

export const groupName = ({ server, transport, hosts, bridge }: Group): string =>
  `${hosts.map(({ key }) => key).join(', ')} → ${bridge === undefined ? '' : `${bridge.name} (${bridge.side}) → `}${server.key}, ${transport}`
