/** Writes docs/peers.md from the results of all peers. */
import { EXPLANATIONS } from '../test/peers/explained.ts'
import type { Judged } from '../test/peers/explained.ts'
import { cellName } from '../test/peers/run.ts'
import type { Sdk, Transport } from '../test/peers/languages.ts'

const table = (rows: readonly (readonly string[])[]): string => {
  const [head = [], ...rest] = rows
  return [head, head.map(() => '---'), ...rest].map((row) => `| ${row.join(' | ')} |`).join('\n')
}

/** `66 of 70`, with what is lost named below the table. */
const counted = (found: readonly Judged[]): string => {
  if (found.length === 0) return '–'
  const kept = found.filter(({ lost }) => lost.length === 0).length
  return kept === found.length ? `all ${found.length}` : `${kept} of ${found.length}`
}

const TRANSPORTS: readonly Transport[] = ['stdio', 'sse', 'http']
const TITLES = { stdio: 'stdio', sse: 'HTTP+SSE', http: 'Streamable HTTP' }

const sideTable = (sdks: readonly Sdk[], judged: readonly Judged[], side: 'server' | 'host'): string =>
  table([
    ['SDK', 'version', ...TRANSPORTS.map((transport) => TITLES[transport])],
    ...sdks.map((sdk) => [
      `${sdk.language}: ${sdk.name}`,
      sdk.version,
      ...TRANSPORTS.map((transport) =>
        counted(judged.filter(({ observation: { cell } }) => cell[side] === sdk && cell.transport === transport)),
      ),
    ]),
  ])

/** Pairs in which a user has set an option of an SDK. */
const optionTable = (judged: readonly Judged[]): string => {
  const pairs = Map.groupBy(judged, ({ observation: { cell } }) => cellName(cell))
  return table([
    ['host → server, transport', 'comparisons', 'equal', 'explained', 'lost'],
    ...[...pairs].map(([pair, found]) => [pair, ...tally(found)]),
  ])
}

/** What a program did in these comparisons. */
const tally = (found: readonly Judged[]): readonly string[] => {
  const lost = found.filter((one) => one.lost.length > 0).length
  const explained = found.filter((one) => one.lost.length === 0 && one.explained.length > 0).length
  return [found.length, found.length - lost - explained, explained, lost].map(String)
}

/** Programs as servers and as hosts, then those that stood between the two. */
const programTable = (programs: readonly Sdk[], judged: readonly Judged[], versionOf: (name: string) => string): string => {
  const rows = programs.flatMap((sdk) =>
    (['server', 'host'] as const).flatMap((side) => {
      const found = judged.filter(({ observation: { cell } }) => cell[side] === sdk && cell.bridge === undefined)
      return found.length === 0 ? [] : [[sdk.key, sdk.version, side, ...tally(found)]]
    }),
  )
  const bridges = new Set(judged.flatMap(({ observation: { cell } }) => cell.bridge ?? []))
  const between = [...bridges].toSorted().map((bridge) => {
    const [name = '', side = ''] = bridge.split(/ [(]|[)]/)
    const place = side === 'host' ? 'between host and Trunkline' : 'between Trunkline and server'
    const found = judged.filter(({ observation: { cell } }) => cell.bridge === bridge)
    return [name, versionOf(name), place, ...tally(found)]
  })
  return table([['program', 'version', 'as', 'comparisons', 'equal', 'explained', 'lost'], ...rows, ...between])
}

const EVERY =
  'Hosts on its own SDK and on the SDKs of TypeScript ask each server; each host asks the servers in TypeScript and the one on its own SDK.'
const FEW =
  'Each side of an SDK was run over some transports, with its own SDK or one of TypeScript on the other side ' +
  '(`npm run peers -- --few --page`); `–`: not run.'

const NOT_SET_UP = `## Hosts that could not be set up

These programs need downloads that do not come from the package registries, so they are not in the table:

- n8n 2.0.0 (npm): \`npm install\` downloads \`xlsx-0.20.2.tgz\` from a site of SheetJS. With \`xlsx\` 0.18.5 of the registry instead (\`overrides\`), the
  binary of \`sqlite3\` is downloaded from GitHub; its build from source did not end within 15 minutes on a busy machine with two cores.
- VS Code as code-server 4.100.3 (npm, the last version for Node 20; later versions need Node 22 or 24): \`@vscode/ripgrep\`, which \`postinstall.sh\`
  installs in \`lib/vscode\`, downloads its program from GitHub. \`argon2\` and \`@vscode/spdlog\` are built from source if GitHub cannot be reached.
`

const cellCount = (judged: readonly Judged[]): number =>
  new Set(judged.map(({ observation: { cell, way } }) => `${cellName(cell)} ${way}`)).size

/** `isFew`: not every pair was run. */
export const renderPeersPage = (
  sdks: readonly Sdk[],
  judged: readonly Judged[],
  notRun: readonly string[],
  isFew: boolean,
  versionOf: (name: string) => string,
): string => {
  const programs = sdks.filter(({ language }) => language === 'program')
  const libraries = sdks.filter((sdk) => !programs.includes(sdk))
  const optioned = judged.filter(
    ({ observation: { cell } }) => cell.host.option !== undefined || cell.server.option !== undefined,
  )
  const plain = judged.filter((one) => !optioned.includes(one))
  const used = EXPLANATIONS.map((explanation, index) => ({
    explanation,
    index,
    times: judged.filter(({ explained }) => explained.some((one) => one.explanation === explanation)).length,
  })).filter(({ times }) => times > 0)
  const losses = new Map<string, Set<string>>()
  for (const { observation, lost } of judged)
    if (lost.length > 0) {
      const { cell, way, scenario } = observation
      const pairs = losses.get(scenario) ?? new Set()
      losses.set(scenario, pairs.add(`${cellName(cell)}, ${way}`))
    }
  return `# SDKs of other languages

<!-- Generated by scripts/peers.ts (npm run peers) from what its runs observed. Do not edit. -->

Servers and hosts on the SDKs that people use ([test/peers](../test/peers/README.md)) do the same things twice: directly, and with
Trunkline in between, at the merged endpoint and at the server’s own (\`/servers/<key>/mcp\`). The two transcripts are
compared member by member. A scenario passes if nothing differs except what the last table explains.

${isFew ? FEW : EVERY}
${cellCount(judged)} pairs were run.

## As servers

${sideTable(libraries, plain, 'server')}

## As hosts

${sideTable(libraries, plain, 'host')}
${
  optioned.length === 0
    ? ''
    : `\n## With options of the SDKs\n\n\`KeepAlive\` of the SDK of Go, on either side, and hosts and servers that speak one revision only.\n\n${optionTable(optioned)}\n`
}${
    programs.length === 0
      ? ''
      : `\n## Real programs\n\nServers that people install, frameworks as hosts, and programs between a host or a server and Trunkline (\`npm run peers programs\`).\n\n${programTable(programs, judged, versionOf)}\n`
  }
${NOT_SET_UP}
## Lost

${losses.size === 0 ? 'Nothing.' : table([['scenario', 'pairs'], ...[...losses].map(([scenario, pairs]) => [scenario, [...pairs].join('<br>')])])}

## What differs for a reason

${table([['what', 'rule', 'comparisons'], ...used.map(({ explanation, times }) => [explanation.reason, explanation.rule, String(times)])])}
${notRun.length === 0 ? '' : `\n## Not run\n\n${notRun.map((line) => `- ${line}`).join('\n')}\n`}`
}
