/** `trunkline call`: one tool, once, through the gateway. */
import type { CallEnd } from '../../admin/calls/call-tool.ts'
import type { Control } from '../../admin/control.ts'
import { elementsAt, lastMember, membersAt } from '../../wire/message/members.ts'
import { Payload, stringAt } from '../../wire/message/payload.ts'
import { readArguments } from '../terminal/arguments.ts'
import type { CommandPrinter } from '../../operator-command.ts'
import { withGateway } from '../serve/inline.ts'
import { CommandError, EXIT } from '../terminal/io.ts'
import type { Invocation } from '../terminal/io.ts'
import { printJsonText, printText } from '../terminal/print.ts'
import { didYouMean, unknownToolset } from '../terminal/unknown-name.ts'

export interface CallOptions {
  /** All arguments as one JSON object. */
  readonly args?: string
  readonly toolset?: string
  /** Name of the host, for rules. */
  readonly as?: string
}

export const call = async (
  invocation: Invocation,
  tool: string,
  pairs: readonly string[],
  { args, toolset, as: host }: CallOptions = {},
): Promise<number> => {
  const { io, json, command } = invocation
  const { end, hint } = await withGateway(invocation, async (control) => {
    const rows = pairs.length === 0 && toolset === undefined ? [] : await control.tools(tool, toolset)
    if (rows === undefined) throw unknownToolset(toolset, command)
    const schema = rows.find(({ name }) => name === tool)?.definition.inputSchema
    const end = await control.call({ tool, args: readArguments(pairs, args, schema), toolset, host }, io.interrupted)
    return { end, hint: end.kind === 'refused' ? await hintFor(control, tool, toolset, command) : '' }
  })
  if (end.kind !== 'result')
    throw io.interrupted.aborted ? new CommandError(EXIT.interrupted, 'interrupted') : failed(tool, end, hint, command)
  if (json) await printJsonText(io, end.result.toString())
  else for (const text of textsOf(end.result)) await printText(io, text)
  if (!end.isError) return EXIT.ok
  throw new CommandError(EXIT.tool, `${tool} ended with the error above; its arguments: ${command('tools', tool, '--json')}`)
}

/** What to type instead of the name of a tool that no host sees; empty if hosts see it. */
const hintFor = async (control: Control, tool: string, toolset: string | undefined, command: CommandPrinter): Promise<string> => {
  const seen = new Set((await control.tools('', toolset))?.map(({ name }) => name))
  if (seen.has(tool)) return ''
  const end = await control.why(tool, toolset)
  const tools = end.kind === 'known' ? end.all.filter(({ kind }) => kind === 'tools') : []
  const named = tools.flatMap(({ exposed }) => exposed ?? []).filter((name) => seen.has(name))
  if (tools.length > 0 && named.length === 0) return `; it is hidden: ${command('why', tool)}`
  const near = end.kind === 'known' ? named : end.near.filter((name) => seen.has(name))
  return `; ${didYouMean(near, command('tools'))}`
}

const failed = (
  tool: string,
  { kind, message }: Exclude<CallEnd, { kind: 'result' }>,
  hint: string,
  command: CommandPrinter,
): CommandError => {
  if (kind === 'refused') return new CommandError(EXIT.usage, `${tool}: ${message}${hint}`)
  if (kind === 'error')
    return new CommandError(EXIT.tool, `${tool}: ${message}; its arguments: ${command('tools', tool, '--json')}`)
  if (kind === 'auth_required' || kind === 'scope_required')
    return new CommandError(EXIT.authorization, `${tool}: ${message}; correct its credentials in the configuration`)
  if (kind === 'policy_denied') return new CommandError(EXIT.tool, `${tool}: ${message}; see ${command('can', 'local', tool)}`)
  // Limits, which the message names: the server can be reached.
  if (kind === 'rate_limited' || kind === 'overloaded' || kind === 'too_large')
    return new CommandError(EXIT.tool, `${tool}: ${message}`)
  return new CommandError(EXIT.unreachable, `${tool}: ${message}; see ${command('check', '--live')}`)
}

/** The texts of a result, and all other content as JSON, unchanged. */
const textsOf = (bytes: Buffer): string[] => {
  const result = Payload.at(bytes)
  const content = result.member('content')
  const blocks = content === undefined ? [] : elementsAt(bytes, content.start)
  if (blocks.length === 0) return [result.raw('structuredContent')?.toString() ?? '{}']
  return blocks.map(({ start, end }) => textOf(bytes, start) ?? bytes.toString('utf8', start, end))
}

const textOf = (bytes: Buffer, start: number): string | undefined => {
  const members = membersAt(bytes, start)
  const text = (key: string): string | undefined => {
    const member = lastMember(members, key)
    return member && stringAt(bytes, member)
  }
  return text('type') === 'text' ? text('text') : undefined
}
