/** Replaces the four list handlers of an SDK 2 server by paginated ones: the high-level server knows no cursors. */
import type { Server } from '@modelcontextprotocol/server'
import { pageOf } from '../offers/lists.ts'
import { extraPrompt, listedPrompt, promptOffers } from '../offers/prompts.ts'
import { listedResource, listedTemplate, resourceOffers, templateOffers } from '../offers/resources.ts'
import { extraTool, toolOffers } from '../offers/tools.ts'
import type { ServerState } from '../server-state.ts'

/**
 * Serves the shared offers in pages; the extra tool and prompt appear at the end while they are there.
 * The conformance offers are left out of these lists, though they still answer.
 */
export const paginateLists = (server: Server, state: ServerState): void => {
  server.setRequestHandler('tools/list', ({ params }) => {
    const { entries, ...rest } = pageOf([...toolOffers, ...(state.hasExtra('tools') ? [extraTool] : [])], params?.cursor)
    return { tools: entries.map(({ name, description, inputSchema }) => ({ name, description, inputSchema })), ...rest }
  })
  server.setRequestHandler('resources/list', ({ params }) => {
    const { entries, ...rest } = pageOf(resourceOffers, params?.cursor)
    return { resources: entries.map(listedResource), ...rest }
  })
  server.setRequestHandler('resources/templates/list', ({ params }) => {
    const { entries, ...rest } = pageOf(templateOffers, params?.cursor)
    return { resourceTemplates: entries.map(listedTemplate), ...rest }
  })
  server.setRequestHandler('prompts/list', ({ params }) => {
    const { entries, ...rest } = pageOf([...promptOffers, ...(state.hasExtra('prompts') ? [extraPrompt] : [])], params?.cursor)
    return { prompts: entries.map(listedPrompt), ...rest }
  })
}
