/** `trunkline tools`: what hosts see, and what it costs them. */
import { withGateway } from '../serve/inline.ts'
import { EXIT } from '../terminal/io.ts'
import type { Invocation } from '../terminal/io.ts'
import { printJson, printLines, remark } from '../terminal/print.ts'
import { columns, thousands } from '../terminal/table.ts'
import { unknownToolset } from '../terminal/unknown-toolset.ts'

export const tools = async (invocation: Invocation, query: string, toolset: string | undefined): Promise<number> => {
  const { io, json } = invocation
  const rows = await withGateway(invocation, (control) => control.tools(query, toolset))
  if (rows === undefined) throw unknownToolset(toolset, invocation.command)
  if (json) await printJson(io, rows)
  else {
    const cells = rows.map(({ name, server, tokens, definition }) => [
      name,
      server,
      `${thousands(tokens)} tok`,
      io.stdout.isTTY === true ? firstWords(definition.description) : '',
    ])
    await printLines(io, columns(cells, new Set([2])))
    const total = rows.reduce((sum, { tokens }) => sum + tokens, 0)
    remark(io, `${rows.length} tools, about ${thousands(total)} tokens`)
  }
  return EXIT.ok
}

const firstWords = (text = ''): string => (text.length > 60 ? `${text.slice(0, 59)}…` : text).split('\n', 1)[0]
