/** `trunkline tools`: the tools that hosts see, with their costs. */
import { asHost, findingText, knownLimits } from './as-host.ts'
import type { AsHost } from './as-host.ts'
import type { ServerStatus } from '../../admin/state/server-status.ts'
import { withGateway } from '../serve/inline.ts'
import { EXIT } from '../terminal/io.ts'
import type { Invocation } from '../terminal/io.ts'
import { printJson, printLines, remark } from '../terminal/print.ts'
import { columns, thousands } from '../terminal/table.ts'
import { unknownToolset } from '../terminal/unknown-name.ts'
import { counted } from '../../values/counted.ts'

export interface ToolsOptions {
  readonly toolset?: string
  /** A host: shows its names of tools, and the limits that they exceed. */
  readonly as?: string
}

export const tools = async (invocation: Invocation, query: string, { toolset, as }: ToolsOptions = {}): Promise<number> => {
  const { io, json } = invocation
  const word = as === undefined ? undefined : knownLimits(as)
  const { rows, host, servers } = await withGateway(invocation, async (control) => ({
    rows: await control.tools(query, toolset),
    host: word === undefined ? undefined : await asHost(control, word, toolset),
    servers: (await control.status()).servers,
  }))
  if (rows === undefined) throw unknownToolset(toolset, invocation.command)
  if (json) await printJson(io, host === undefined ? rows : rows.map((row) => ({ ...row, as: seenBy(host, row.name) })))
  else {
    const cells = rows.map(({ name, server, tokens, definition }) => [
      host?.nameOf(name) ?? name,
      server,
      `${thousands(tokens)} tok`,
      host === undefined
        ? io.stdout.isTTY === true
          ? firstWords(definition.description)
          : ''
        : host.findings(name).map(findingText).join('; '),
    ])
    await printLines(io, columns(cells, new Set([2])))
    const total = rows.reduce((sum, { tokens }) => sum + tokens, 0)
    remark(io, `${counted(rows.length, 'tool')}, about ${thousands(total)} tokens`)
    const isWhole = query === '' && toolset === undefined
    if (isWhole || rows.length === 0) for (const note of servers.flatMap(missingTools)) remark(io, note)
    for (const finding of host?.findings('') ?? []) remark(io, `${host?.label}: ${findingText(finding)}`)
  }
  return EXIT.ok
}

/** Why tools of a server are not among those of hosts. */
const missingTools = ({ key, state, reason, tools, leftOut }: ServerStatus): string[] => {
  const [first, ...others] = leftOut.filter(({ kind }) => kind === 'tools')
  const isUnwell = tools === 0 && state !== 'healthy' && state !== 'degraded'
  return [
    ...(isUnwell ? [`${key}: no tools (${state})${reason === undefined ? '' : `: ${reason}`}`] : []),
    ...(first === undefined
      ? []
      : [
          `${key}: left out: "${first.name}": ${first.reason}${others.length === 0 ? '' : `; and ${counted(others.length, 'other')}`}`,
        ]),
  ]
}

/** One tool as a host presents it. */
const seenBy = (host: AsHost, exposed: string): object => ({
  name: host.nameOf(exposed),
  findings: host.findings(exposed).map(({ consequence, message, remedy }) => ({ consequence, message, remedy })),
})

const firstWords = (text = ''): string => (text.length > 60 ? `${text.slice(0, 59)}…` : text).replace(/\n[^]*/, '')
