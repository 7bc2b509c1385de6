/** Where each scenario is played: which SDK, in which revision, over which transports of host and server. */

export interface Row {
  readonly key: string
  readonly sdk: 1 | 2
  readonly era: 'legacy' | 'modern'
  readonly revision: string
  /** How the host reaches the bridge, or directly the server. `sole`: `/mcp` of a gateway with one server and `prefix: never`. */
  readonly host: 'http' | 'sole' | 'sse' | 'stdio' | 'attached'
  /** How the server is reached through the bridge; directly it is met over the host's transport. */
  readonly server: 'http' | 'stdio'
}

const LATEST = '2025-11-25'
const MODERN = '2026-07-28'

const row = (sdk: 1 | 2, revision: string, host: Row['host'], server: Row['server']): Row => ({
  key: `SDK ${sdk}, ${revision}, ${HOSTS[host]} → ${server === 'http' ? 'Streamable HTTP' : 'stdio'}`,
  sdk,
  era: revision === MODERN ? 'modern' : 'legacy',
  revision,
  host,
  server,
})

const HOSTS: Readonly<Record<Row['host'], string>> = {
  http: 'Streamable HTTP',
  sole: 'Streamable HTTP at `/mcp`',
  sse: 'HTTP+SSE',
  stdio: 'stdio',
  attached: 'stdio, attached',
}

export const HTTP_ROWS: readonly Row[] = [
  row(1, LATEST, 'http', 'http'),
  row(2, LATEST, 'http', 'http'),
  row(2, MODERN, 'http', 'http'),
  row(2, '2024-11-05', 'http', 'http'),
  row(2, '2025-03-26', 'http', 'http'),
  row(2, '2025-06-18', 'http', 'http'),
  row(2, LATEST, 'sole', 'http'),
  row(2, MODERN, 'sole', 'http'),
  row(1, LATEST, 'sse', 'http'),
]

export const STDIO_ROWS: readonly Row[] = [
  row(1, LATEST, 'stdio', 'stdio'),
  row(2, LATEST, 'stdio', 'stdio'),
  row(2, MODERN, 'stdio', 'stdio'),
  row(2, '2025-06-18', 'stdio', 'stdio'),
  row(2, LATEST, 'attached', 'stdio'),
  row(2, MODERN, 'attached', 'stdio'),
]

/** What people put supergateway, mcp-proxy and mcp-remote there for. */
export const MIXED_ROWS: readonly Row[] = [
  row(2, LATEST, 'http', 'stdio'),
  row(2, MODERN, 'http', 'stdio'),
  row(2, LATEST, 'stdio', 'http'),
  row(2, MODERN, 'stdio', 'http'),
]

export const ROWS: readonly Row[] = [...HTTP_ROWS, ...STDIO_ROWS, ...MIXED_ROWS]
