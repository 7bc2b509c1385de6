/** The tools of the catalog as a person looks for them, and what they cost. */
import { estimateTokens } from '../../catalog/tokens.ts'
import type { Gateway } from '../../gateway/gateway.ts'
import type { Searches } from '../../gateway/lists/searches.ts'
import { EVERYTHING } from '../../rpc/call.ts'
import type { Scope } from '../../rpc/call.ts'
import { MODERN } from '../../wire/protocol/revisions.ts'
import { parseOwnJson } from '../../values/own-json.ts'

/** One tool as `tools --json` prints it. */
export interface ToolRow {
  /** The exposed name. */
  readonly name: string
  /** Key of the server. */
  readonly server: string
  /** What the server calls it. */
  readonly original: string
  /** An estimate: the bytes of the definition as it is listed, divided by 4. */
  readonly tokens: number
  /** The definition as a modern host gets it. */
  readonly definition: ToolDefinition
}

export interface ToolDefinition {
  readonly name: string
  readonly description?: string
  readonly inputSchema?: unknown
}

/** Tools of the scope whose name, server or description holds every word of `query`, in the order of the catalog. */
export const listTools = (gateway: Gateway, query = '', scope: Scope = EVERYTHING): ToolRow[] => {
  const words = query.toLowerCase().split(/\s+/).filter(Boolean)
  const { rows, entries } = gateway.feed.viewOf({ scope, revision: MODERN }).list('tools')
  return rows
    .map(({ server, entry, exposed }, at): ToolRow => {
      // Cast: there is an entry for each row.
      const bytes = entries[at]!
      const definition = parseOwnJson<ToolDefinition>(bytes.toString())
      const tokens = estimateTokens(bytes)
      return { name: exposed, server: server.key, original: entry.original, tokens, definition }
    })
    .filter(({ name, server, definition }) => {
      const text = `${name} ${server} ${definition.description ?? ''}`.toLowerCase()
      return words.every((word) => text.includes(word))
    })
}

/** One tool that a search has found. */
export interface FoundTool {
  readonly name: string
  readonly server: string
  /** The better, the greater; says nothing across searches. */
  readonly score: number
  readonly description: string
}

const MOST_FOUND = 20

/** What a host that searches this scope is answered, whether its toolset is one that is searched or not. */
export const findTools = async (gateway: Gateway, searches: Searches, query: string, scope: Scope): Promise<FoundTool[]> => {
  if (query.trim() === '') return []
  const view = gateway.feed.viewOf({ scope, revision: MODERN })
  const { rows, entries } = view.list('tools')
  return (await searches.find(view, query, MOST_FOUND)).map(({ at, score }) => {
    // Cast: what is found is in the list.
    const [row, bytes] = [rows[at]!, entries[at]!]
    const { description = '' } = parseOwnJson<ToolDefinition>(bytes.toString())
    return { name: row.exposed, server: row.server.key, score, description }
  })
}
