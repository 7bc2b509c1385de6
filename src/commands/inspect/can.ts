/** `trunkline can`: whether a caller may make a call, and the rule that decides. The call is not made. */
import type { CanEnd } from '../../admin/explain/can.ts'
import { parseJsonObject } from '../../values/json-object.ts'
import { readArguments } from '../terminal/arguments.ts'
import { withGateway } from '../serve/inline.ts'
import { CommandError, EXIT } from '../terminal/io.ts'
import type { Invocation } from '../terminal/io.ts'
import { printResult } from '../terminal/print.ts'
import { unknownName, unknownToolset } from '../terminal/unknown-name.ts'

export interface CanOptions {
  readonly args?: string
  readonly toolset?: string
  /** JSON object. */
  readonly claims?: string
  /** Separated by blanks or commas. */
  readonly scopes?: string
  readonly host?: string
  readonly address?: string
}

const WORDS = { allow: 'yes', deny: 'no', confirm: 'yes, once a person has confirmed it' } as const
const COLOURS = { allow: 'green', deny: 'red', confirm: 'yellow' } as const

/** Exit code 0: yes, also with a confirmation; `EXIT.mismatch`: no. */
export const can = async (
  invocation: Invocation,
  principal: string,
  name: string,
  pairs: readonly string[],
  options: CanOptions,
): Promise<number> => {
  const { command } = invocation
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
    if (end.hiddenBy === undefined) throw unknownName(name, end.near, command)
    throw new CommandError(EXIT.mismatch, `no: ${end.hiddenBy} hides ${name} from ${principal}`)
  }
  const { decision, rule, reason, detail, isListed } = end
  await printResult(invocation, end, (paint) => [
    [paint(WORDS[decision], COLOURS[decision]), `: ${rule ?? 'no policy is configured'}`],
    ...(reason === undefined ? [] : [`  ${reason}`]),
    ...(detail === undefined ? [] : [`  ${detail}`]),
    ...(isListed ? [] : ['  it is not in the lists of this caller']),
  ])
  if (decision !== 'deny') return EXIT.ok
  throw new CommandError(EXIT.mismatch, `${principal} may not use ${name}`)
}

const readObject = (text: string | undefined): unknown => {
  const value = text === undefined ? undefined : parseJsonObject(text)
  if (text === undefined || value !== undefined) return value
  throw new CommandError(EXIT.usage, `--claims is not a JSON object; write for example --claims '{"groups":["dev"]}'`)
}
