/** `trunkline why`: the chain of rules that shows, hides or renames one tool, prompt or resource. */
import type { Step, Why } from '../../admin/why.ts'
import { withGateway } from '../serve/inline.ts'
import { CommandError, EXIT } from '../terminal/io.ts'
import type { Invocation } from '../terminal/io.ts'
import { painter, printJson, printLines } from '../terminal/print.ts'
import type { Colour, Line, Paint } from '../terminal/print.ts'
import { columns } from '../terminal/table.ts'

/** `toolset`: what this one makes of it; all of them without. */
export const why = async (invocation: Invocation, name: string, toolset: string | undefined): Promise<number> => {
  const { io, json, context, command } = invocation
  const end = await withGateway(invocation, (control) => control.why(name, toolset))
  if (end.kind === 'no toolset') {
    const near = end.near.length === 0 ? `see which are: ${command('check', '--json')}` : `did you mean ${end.near.join(', ')}?`
    throw new CommandError(EXIT.usage, `there is no toolset "${toolset}"; ${near}`)
  }
  if (end.kind !== 'known') {
    const near = end.near.length === 0 ? `see what there is: ${command('tools')}` : `did you mean ${end.near.join(', ')}?`
    throw new CommandError(EXIT.usage, `nothing is called "${name}"; ${near}`)
  }
  if (json) await printJson(io, end.all)
  else
    await printLines(
      io,
      end.all.flatMap((one) => lines(one, painter(io.stdout, context.env))),
    )
  return EXIT.ok
}

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
  const cells = steps.map(({ effect, what, path, place }) => [effect, what, [place, path].filter(Boolean).join(' ')])
  const rows = columns(cells).map((line, at): Line => ['  ', paint(line, COLOURS[steps[at].effect])])
  return [`${kind} ${head}`, ...rows]
}
