/** `trunkline can`: whether a caller may make a call, and the rule that says so. The call is not made. */
import type { CanEnd } from '../../admin/explain/can.ts'
import { readArguments } from '../terminal/arguments.ts'
import { withGateway } from '../serve/inline.ts'
import { CommandError, EXIT } from '../terminal/io.ts'
import type { Invocation } from '../terminal/io.ts'
import { painter, printJson, printLines } from '../terminal/print.ts'
import { unknownToolset } from '../terminal/unknown-toolset.ts'

export interface CanOptions {
  readonly args?: string
  readonly toolset?: string
  /** JSON object. */
  readonly claims?: string
  /** With blanks or commas between. */
  readonly scopes?: string
  readonly host?: string
  readonly address?: string
}

const WORDS = { allow: 'yes', deny: 'no', confirm: 'yes, once a person has confirmed it' } as const
const COLOURS = { allow: 'green', deny: 'red', confirm: 'yellow' } as const

/** Exit code 0: yes, also where a person is asked; `EXIT.mismatch`: no. */
export const can = async (
  invocation: Invocation,
  principal: string,
  name: string,
  pairs: readonly string[],
  options: CanOptions,
): Promise<number> => {
  const { io, json, context, command } = invocation
  const { toolset } = options
  const claims: unknown = readObject(options.claims)
  const end = await withGateway(invocation, async (control): Promise<CanEnd> => {
    const rows = pairs.length === 0 ? [] : await control.tools(name, toolset)
    const schema = rows?.find((row) => row.name === name)?.definition.inputSchema
    const args: unknown = JSON.parse(readArguments(pairs, options.args, schema))
    const scopes = options.scopes?.split(/[\s,]+/).filter(Boolean)
    return control.can(
      JSON.stringify({ principal, name, arguments: args, toolset, claims, scopes, host: options.host, address: options.address }),
    )
  })
  if (end.kind === 'no toolset') throw unknownToolset(toolset, command)
  if (end.kind === 'unknown') {
    const near = end.near.length === 0 ? `see what there is: ${command('tools')}` : `did you mean ${end.near.join(', ')}?`
    const why =
      end.hiddenBy === undefined ? `nothing is called "${name}"; ${near}` : `no: ${end.hiddenBy} hides ${name} from ${principal}`
    throw new CommandError(end.hiddenBy === undefined ? EXIT.usage : EXIT.mismatch, why)
  }
  const { decision, rule, reason, detail, isListed } = end
  if (json) await printJson(io, end)
  else {
    const paint = painter(io.stdout, context.env)
    await printLines(io, [
      [paint(WORDS[decision], COLOURS[decision]), `: ${rule ?? 'no policy is configured'}`],
      ...(reason === undefined ? [] : [`  ${reason}`]),
      ...(detail === undefined ? [] : [`  ${detail}`]),
      ...(isListed ? [] : ['  lists do not show it to this caller']),
    ])
  }
  return decision === 'deny' ? EXIT.mismatch : EXIT.ok
}

const readObject = (text: string | undefined): unknown => {
  if (text === undefined) return undefined
  try {
    const value: unknown = JSON.parse(text)
    if (typeof value === 'object' && value !== null && !Array.isArray(value)) return value
  } catch {
    // Told below.
  }
  throw new CommandError(EXIT.usage, `--claims is no JSON object; write for example --claims '{"groups":["dev"]}'`)
}
