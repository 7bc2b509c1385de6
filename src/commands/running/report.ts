/** `trunkline report`: one call as Markdown for the author of the server: without secrets, and reproducible. */
import type { CallDetail, Lane } from '../../observe/capture/captured.ts'
import type { KeptBody } from '../../observe/capture/body.ts'
import { VERSION } from '../../version.ts'
import { EXIT } from '../terminal/io.ts'
import type { Invocation } from '../terminal/io.ts'
import { printJson, printText } from '../terminal/print.ts'
import { findCall } from './captured-calls.ts'

export const report = async (invocation: Invocation, id: string): Promise<number> => {
  const { io, json, context } = invocation
  const { detail } = await findCall(invocation, id)
  // Cast: texts become texts.
  if (json) await printJson(io, JSON.parse(withoutHome(JSON.stringify(detail), context.home)) as CallDetail)
  else await printText(io, formatReport(detail, context.home))
  return EXIT.ok
}

/** Markdown. `home`: the user's home folder, which is replaced by `~`. */
export const formatReport = (detail: CallDetail, home: string): string => {
  const { server, original, method, outcome, error, ms, times, hops, deviations } = detail
  const parts = [
    `# ${method} ${original ?? detail.name ?? ''}: ${outcome ?? 'in flight'}`,
    error === null ? '' : `\`${error.kind ?? error.code ?? 'error'}\`: ${error.message ?? ''}`,
    [
      '| | |',
      '| --- | --- |',
      `| server | \`${server ?? 'none'}\` |`,
      ...hops
        .slice(-1)
        .map(({ transport, revision }) => `| protocol | ${revision} over ${transport === 'pipe' ? 'stdio' : transport} |`),
      detail.transport === null
        ? '| host | the command line |'
        : `| host | ${detail.host ?? 'unknown'}, ${detail.revision} over ${detail.transport} |`,
      `| gateway | trunkline ${VERSION}, Node ${process.versions.node}, ${process.platform} |`,
      `| time | ${ms.total} ms: server ${ms.downstream}, gateway ${ms.gateway}, host ${ms.host} |`,
      `| first byte | ${times.firstByte ?? 'none'} ms |`,
    ].join('\n'),
    ...hops.map(formatHop),
    deviations.length === 0
      ? ''
      : ['## Translations', ...deviations.map(({ rule, reason }) => `- ${rule}: ${reason}`)].join('\n\n'),
    '## To reproduce',
    'Send the request above to the server unchanged, after the handshake of its revision. Values that are `***` were hidden.',
  ]
  return withoutHome(parts.filter((part) => part !== '').join('\n\n'), home)
}

/** Replaces the home folder by `~`: in paths, in JSON, in JSON inside of a text, and in URLs. */
export const withoutHome = (text: string, home: string): string => {
  if (home.length <= 1) return text
  const inJson = JSON.stringify(home).slice(1, -1)
  const withSlashes = home.replaceAll('\\', '/')
  const forms = new Set([home, inJson, JSON.stringify(inJson).slice(1, -1), withSlashes, encodeURI(withSlashes)])
  const literals = [...forms].map((form) => form.replaceAll(/[.*+?^${}()|[\]\\/]/g, String.raw`\$&`))
  return text.replaceAll(new RegExp(`(?:${literals.join('|')})(?![\\w-])`, 'g'), '~')
}

const formatHop = ({ kind, sent, done, end, request, response }: Lane, at: number): string =>
  [
    `## Request ${at + 1}${kind === 'call' ? '' : ` (${kind})`}: sent after ${sent} ms, ${end} after ${done ?? '…'} ms`,
    formatBody(request),
    formatBody(response),
  ].join('\n\n')

/** In a fence that is longer than any in the text. */
const formatBody = (body: KeptBody | undefined): string => {
  if (body === undefined) return '(not kept: ui.capture.bodies)'
  const text = body.text ?? `${body.head}\n… ${body.omitted} bytes …\n${body.tail}`
  const fence = '`'.repeat(Math.max(3, ...[...text.matchAll(/`+/g)].map(([run]) => run.length + 1)))
  return `${fence}json\n${text}\n${fence}`
}
