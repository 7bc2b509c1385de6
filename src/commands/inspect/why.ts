/** `trunkline why`: the rules that show, hide or rename one tool, prompt or resource. */
import type { Step, Why } from '../../admin/explain/why.ts'
import { asHost, findingText, knownLimits } from './as-host.ts'
import type { AsHost } from './as-host.ts'
import { withGateway } from '../serve/inline.ts'
import { EXIT } from '../terminal/io.ts'
import type { Invocation } from '../terminal/io.ts'
import { printResult } from '../terminal/print.ts'
import type { Colour, Line, Paint } from '../terminal/print.ts'
import { unknownName, unknownToolset } from '../terminal/unknown-name.ts'
import { paintedRows } from '../terminal/table.ts'

export interface WhyOptions {
  /** Only this toolset. */
  readonly toolset?: string
  /** A host: adds its names and limits. */
  readonly as?: string
}

export const why = async (invocation: Invocation, name: string, { toolset, as }: WhyOptions = {}): Promise<number> => {
  const { command } = invocation
  const word = as === undefined ? undefined : knownLimits(as)
  const { end, host } = await withGateway(invocation, async (control) => ({
    end: await control.why(name, toolset),
    host: word === undefined ? undefined : await asHost(control, word, toolset),
  }))
  if (end.kind === 'no toolset') throw unknownToolset(toolset, command, end.near)
  if (end.kind !== 'known') throw unknownName(name, end.near, command)
  const all = host === undefined ? end.all : end.all.map((one) => ({ ...one, steps: [...one.steps, ...hostSteps(host, one)] }))
  await printResult(invocation, all, (paint) => all.flatMap((one) => lines(one, paint)))
  return EXIT.ok
}

/** Names and limits of a host for a tool. */
const hostSteps = (host: AsHost, { kind, exposed }: Why): Step[] => {
  if (kind !== 'tools' || exposed === undefined) return []
  const name = host.nameOf(exposed)
  const renamed = name === exposed ? [] : [hostStep('renames', `${host.label} calls it ${JSON.stringify(name)}`)]
  const found = host
    .findings(exposed)
    .map((finding) => hostStep(finding.consequence === 'breaks' ? 'hides' : 'notes', `${host.label}: ${findingText(finding)}`))
  return [...renamed, ...(found.length === 0 ? [hostStep('shows', `${host.label} accepts it unchanged`)] : found)]
}

const hostStep = (effect: Step['effect'], what: string): Step => ({ effect, what, path: '', place: '' })

const COLOURS: Readonly<Record<Step['effect'], Colour>> = {
  offers: 'dim',
  notes: 'dim',
  shows: 'green',
  hides: 'red',
  renames: 'yellow',
  edits: 'yellow',
}

const lines = ({ kind, server, original, exposed, steps }: Why, paint: Paint): Line[] => {
  const head = exposed === undefined ? `${server} ${original}: hidden from hosts` : `${exposed}: shown to hosts`
  const rows = steps.map(({ effect, what, path, place }) => ({
    cells: [effect, what, [place, path].filter(Boolean).join(' ')],
    colour: COLOURS[effect],
  }))
  return [`${kind} ${head}`, ...paintedRows(rows, paint)]
}
