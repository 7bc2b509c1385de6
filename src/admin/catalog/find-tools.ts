/** The tools of the catalog, for people, with their costs. */
import { estimateTokens } from '../../catalog/tokens.ts'
import { mapRows } from '../../catalog/view/view.ts'
import type { Gateway } from '../../gateway/gateway.ts'
import type { Searches } from '../../gateway/lists/searches.ts'
import { EVERYTHING } from '../../rpc/call.ts'
import type { Scope } from '../../rpc/call.ts'
import { MODERN } from '../../wire/protocol/revisions.ts'
import { parseOwnJson } from '../../values/own-json.ts'
import type { FoundTool, ToolDefinition, ToolRow } from './tools.ts'

/** Tools of the scope whose name, server or description contains every word of `query`, in the order of the catalog. */
export const listTools = (gateway: Gateway, query = '', scope: Scope = EVERYTHING): ToolRow[] => {
  const words = query.toLowerCase().split(/\s+/).filter(Boolean)
  const list = gateway.feed.viewOf({ scope, revision: MODERN }).list('tools')
  return mapRows(list, ({ server, entry, exposed }, bytes): ToolRow => {
    const text = bytes.toString()
    const definition = parseOwnJson<ToolDefinition>(text)
    const tokens = estimateTokens(bytes)
    const isExact = JSON.stringify(definition) === text
    return { name: exposed, server: server.key, original: entry.original, tokens, definition, ...(!isExact && { text }) }
  }).filter(({ name, server, definition }) => {
    const text = `${name} ${server} ${definition.description ?? ''}`.toLowerCase()
    return words.every((word) => text.includes(word))
  })
}

const MOST_FOUND = 20

/** The results that a searching host of this scope would get, also if its toolset has no search. */
export const findTools = async (gateway: Gateway, searches: Searches, query: string, scope: Scope): Promise<FoundTool[]> => {
  if (query.trim() === '') return []
  const view = gateway.feed.viewOf({ scope, revision: MODERN })
  const { rows, entries } = view.list('tools')
  return (await searches.find(view, query, MOST_FOUND)).map(({ at, score }) => {
    // Cast: the search returns positions in the list.
    const [row, bytes] = [rows[at]!, entries[at]!]
    const { description = '' } = parseOwnJson<ToolDefinition>(bytes.toString())
    return { name: row.exposed, server: row.server.key, score, description }
  })
}
