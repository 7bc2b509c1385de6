/** Calls as a day of work makes them, for the dashboard: quick ones, slow ones, refused ones, a question, a projection. */
import type { DashboardScene } from './dashboard-scene.ts'

export const CLIENT = (name: string, version: string): { readonly 'io.modelcontextprotocol/clientInfo': object } => ({
  'io.modelcontextprotocol/clientInfo': { name, version },
})

/** `seconds`: how long the slow server takes; the person takes nine tenths of it. Above 1.2, so that both are slow calls (1 s). */
export const makeCalls = async (scene: DashboardScene, seconds = 1.4): Promise<void> => {
  const agent = await scene.host({ meta: CLIENT('claude-code', '2.1.0') })
  const editor = await scene.host({ era: 'legacy', revision: '2025-03-26', capabilities: {} })
  const reviewer = await scene.host({ meta: CLIENT('cursor', '2.4'), toolset: 'review' })
  const call = (host: typeof agent, name: string, args: object = {}): Promise<unknown> =>
    host.call('tools/call', { name, arguments: { ...args } }).catch((error: unknown) => error)
  const person = await scene.host({ era: 'legacy', capabilities: { elicitation: {} } })
  person.answer('elicitation/create', async () => {
    await new Promise((resolve) => setTimeout(resolve, seconds * 900))
    return { action: 'accept', content: { ok: true } }
  })
  for (let at = 0; at < 6; at++) {
    await call(agent, 'code__search_code', { query: 'retry 429', sort: 'recent' })
    await call(agent, 'files__list_allowed_directories')
    await call(reviewer, 'code__list_pulls', { repository: 'acme/service' })
    await call(agent, 'memory__read_graph')
  }
  await call(editor, 'code__list_pulls', { repository: 'acme/service' })
  await call(agent, 'memory__create_entities', {
    entities: [{ name: 'service-1', entityType: 'repository', observations: ['retries on 429'] }],
  })
  await call(agent, 'code__fail')
  await call(agent, 'code__read_notes')
  await call(reviewer, 'memory__read_graph')
  await call(agent, 'tickets__search_tickets', { query: 'open' })
  await Promise.all([
    call(agent, 'code__export_report', { seconds }),
    call(person, 'code__create_issue', { title: 'Retry on 429', body: 'See service-1.' }),
  ])
  await call(agent, 'files__read_text_file', { path: `${scene.folder}/documents/notes.md` })
  await call(agent, 'code__search_code', { query: 'back-off' })
  await Promise.all([agent, editor, reviewer, person].map((host) => host[Symbol.asyncDispose]()))
}
