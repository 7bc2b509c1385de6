/**
 * server-everything behind Trunkline. It shows some tools only to clients that can sample, elicit or list roots: every host sees
 * all that a client sees directly, and each tool works to its end.
 */
import { afterAll, beforeAll, expect, test } from 'vitest'
import { everythingCommand, startEverything } from '../support/everything.ts'
import { gatewayHome, startGatewayProcess, stdioGateway } from '../support/gateway-process.ts'
import { connectCapable1, connectCapable2 } from '../support/hosts/capable.ts'
import type { Behind } from '../support/hosts/capable.ts'
import type { Target } from '../support/processes.ts'

const SERVERS = ['stdio', 'http', 'sse'] as const
type Server = (typeof SERVERS)[number]

const behind = (says: string): Behind => ({
  says,
  fill: (fields) => (fields.includes('interpretation') ? [['interpretation', 'historical']] : [['name', `Ada of ${says}`]]),
  root: `file:///home/${encodeURIComponent(says)}`,
})

/** Every tool, the shortest arguments that take it to its end, and what its result shows then to the host `says` tells of. */
const tools: Record<string, readonly [args: Record<string, unknown>, shows: (says: string) => string]> = {
  echo: [{ message: 'hello' }, () => 'Echo: hello'],
  'get-annotated-message': [{ messageType: 'error', includeImage: true }, () => '"priority":1'],
  'get-env': [{}, () => 'PORT'],
  'get-resource-links': [{ count: 2 }, () => 'resource_link'],
  'get-resource-reference': [{ resourceType: 'Text', resourceId: 1 }, () => '"type":"resource"'],
  'get-structured-content': [{ location: 'New York' }, () => 'structuredContent'],
  'get-sum': [{ a: 2, b: 3 }, () => 'The sum of 2 and 3 is 5'],
  'get-tiny-image': [{}, () => '"type":"image"'],
  'gzip-file-as-resource': [{ name: 'a.gz', data: 'data:text/plain,hello', outputType: 'resource' }, () => 'application/gzip'],
  'toggle-simulated-logging': [{}, () => 'Started'],
  'toggle-subscriber-updates': [{}, () => 'Started'],
  'trigger-long-running-operation': [{ duration: 0.5, steps: 2 }, () => 'Long running operation completed'],
  'get-roots-list': [{}, (says) => `file:///home/${encodeURIComponent(says)}`],
  'trigger-elicitation-request': [{}, (says) => `Ada of ${says}`],
  'trigger-url-elicitation': [{ url: 'https://example.com/visit' }, () => 'User completed the URL elicitation flow'],
  'trigger-sampling-request': [{ prompt: 'Who are you?' }, (says) => says],
  'simulate-research-query': [{ topic: 'python', ambiguous: true }, () => 'historical'],
}

const opened = new AsyncDisposableStack()
const direct = {} as Record<Server, string[]>
let alone: string
let gateway: { url: string; sseUrl: string }

beforeAll(async () => {
  const [http, sse] = await Promise.all([startEverything('streamableHttp'), startEverything('sse')])
  const command = { ...everythingCommand(), env: { PORT: 'none' } }
  opened.use(http)
  opened.use(sse)
  const targets: Record<Server, Target> = { stdio: command, http, sse }
  const listed = SERVERS.map(async (key) => {
    await using client = await connectCapable1(key)(targets[key], behind('direct'))
    direct[key] = await client.listTools()
  })
  await Promise.all(listed)
  const home = opened.use(await gatewayHome())
  const servers = { stdio: command, http: { url: http.url }, sse: { url: sse.url } }
  const config = { version: 1, servers, reload: { watch: false } }
  // A host that starts the command of a gateway that runs already would be served by that one.
  alone = await home.write('alone', config)
  gateway = opened.use(await startGatewayProcess(await home.write('shared', config)))
})
afterAll(() => opened.disposeAsync())

test.each(SERVERS)('over %s the server shows the tools that are called here, and no other', (key) => {
  expect(direct[key].toSorted()).toEqual(Object.keys(tools).toSorted())
})

test.concurrent.each([
  ['a legacy host over stdio', connectCapable1('stdio'), () => stdioGateway(alone)],
  ['a legacy host over Streamable HTTP', connectCapable1('http'), () => gateway],
  ['a legacy host over HTTP+SSE', connectCapable1('sse'), () => ({ url: gateway.sseUrl })],
  ['a modern host over stdio', connectCapable2('stdio'), () => stdioGateway(alone)],
  ['a modern host over Streamable HTTP', connectCapable2('http'), () => gateway],
])('%s sees every tool over each transport of the server, and each works to its end', async (says, connect, target) => {
  await using host = await connect(target(), behind(says))
  const exposed = SERVERS.flatMap((key) => direct[key].map((name) => `${key}__${name}`))
  expect((await host.listTools()).toSorted()).toEqual(exposed.toSorted())
  const runs = SERVERS.map(async (key) => {
    for (const name of direct[key]) {
      const [args, shows] = tools[name] ?? [{}, () => 'no such tool']
      const result = await host.callTool(`${key}__${name}`, args)
      expect(result, name).not.toMatchObject({ isError: true })
      expect(JSON.stringify(result), name).toContain(shows(says))
    }
  })
  await Promise.all(runs)
})
