/** Tasks, MCP Apps, custom headers. */
import { isModern, since } from './cells.ts'
import type { Cell } from './cells.ts'
import { callTool, exposed, exposedUri, judge, projected, same, textOf } from './probing.ts'
import type { Expected, Feature } from './probing.ts'
import { listAll } from './content.ts'
import { SAID } from './server.ts'
import type { JsonMap } from '../fakes/messages.ts'

const DONE = 'done by a task'

const tasks: Feature = {
  name: 'tasks',
  what: 'A tool runs only as a task. The host follows the task to its result, if it can.',
  expected: (host, server): Expected => {
    if (!since(server, '2025-11-25')) return 'none'
    if (host.revision === server.revision) return 'full'
    return isModern(host)
      ? projected(
          'A task of 2025-11-25 is translated into the form of the extension: other members, and the result inside the task.',
          '3.17',
          'B180',
        )
      : projected('The host has no such tasks: Trunkline follows the task and answers the call with its result.', '3.17', 'B173')
  },
  probe: async (pair) => {
    const asks = pair.host.revision === '2025-11-25' && !isModern(pair.server)
    const created = await callTool(pair, 'task', asks ? { task: { ttl: 60_000 } } : {})
    if (textOf(created) === DONE) return 'projected'
    const { taskId } = (created['task'] ?? created) as JsonMap
    if (!isModern(pair.host)) return judge(created, textOf(await pair.host.host.call('tasks/result', { taskId })) === DONE, false)
    const task = await pair.host.host.call('tasks/get', { taskId })
    const isDone = task['status'] === 'completed' && textOf(task['result'] as JsonMap) === DONE
    return judge(task, isDone && isModern(pair.server), isDone)
  },
}

const apps: Feature = {
  name: 'MCP Apps',
  what: 'A tool that the server lists only to hosts with the extension is listed with its template, and the template is relayed unchanged.',
  expected: () => 'full',
  probe: async (pair) => {
    const { entries } = await listAll(pair, 'tools/list')
    const uri = exposedUri(pair, 'ui://panel')
    const panel = entries.find(({ name }) => name === exposed(pair, 'panel'))
    const { contents } = await pair.host.host.call('resources/read', { uri })
    const [page] = contents as JsonMap[]
    const isListed = same(panel?.['_meta'], { ui: { resourceUri: uri, 'x/y': 1 } })
    return judge([panel, page], isListed && same(page, { uri, text: SAID.html, _meta: { ui: { csp: {} } } }), false)
  },
}

const mirrors = (cell: Cell): boolean => isModern(cell) && cell.transport === 'http'

const headers: Feature = {
  name: 'custom headers',
  what: 'A parameter of a tool is mirrored into a header (`x-mcp-header`, Streamable HTTP since 2026-07-28).',
  expected: (host, server) =>
    !mirrors(server)
      ? 'none'
      : mirrors(host)
        ? 'full'
        : projected('The host sends no header: it is made from the argument.', 'B192', 'B219'),
  probe: async (pair) => {
    const options = mirrors(pair.host) ? { headers: { 'mcp-param-region': 'west' } } : {}
    const said = textOf(await callTool(pair, 'region', { arguments: { region: 'west' } }, options))
    return judge(said, said === 'west' && mirrors(pair.host), said === 'west')
  },
}

export const extensionFeatures: readonly Feature[] = [tasks, apps, headers]
