/** What a program may pass to `createGateway`: what is wrong is refused with its place, before anything is started. */
import { fileURLToPath } from 'node:url'
import { expect, test, vi } from 'vitest'
import { ConfigError, createGateway } from '../../src/index.ts'
import type { CreateGatewayOptions, EmbeddedGateway, Log } from '../../src/index.ts'

const SECRET = 'correct-horse-battery-staple'
const fake = (mode: string) => ({
  command: process.execPath,
  args: [fileURLToPath(new URL('../support/children/fake-server.ts', import.meta.url)), mode],
  env: { TOKEN: SECRET },
})
const listen = { http: { bind: '127.0.0.1:0' } }
const silent = { debug: () => undefined, info: () => undefined, warn: () => undefined, error: () => undefined }
const configuration = { listen, servers: {} }
const layer = (inner: unknown): unknown => inner

/** As a program in plain JavaScript does it. */
const created = (options: unknown): Promise<EmbeddedGateway> => createGateway(options as CreateGatewayOptions)

test.for<readonly [what: string, options: unknown, problems: readonly string[]]>([
  ['nothing', undefined, ['options: expected an object; pass { configuration: … }']],
  ['a path', 'trunkline.yaml', ['options: expected an object; pass { configuration: … }']],
  ['an empty object', {}, ['configuration: expected an object; begin with { servers: … }']],
  ['null as configuration', { configuration: null }, ['configuration: expected an object; begin with { servers: … }']],
  [
    'other names',
    { config: configuration, layer: [] },
    [
      'options: unknown option "config"; known options: configuration, listen, layers, log',
      'options: unknown option "layer"; did you mean "layers"?',
    ],
  ],
  ['no list of layers', { configuration, layers: layer }, ['options layers: expected a list of functions, got a function']],
  [
    'a layer that is missing',
    { configuration, layers: [layer, undefined, null] },
    ['options layers[1]: expected a function, got undefined', 'options layers[2]: expected a function, got null'],
  ],
  [
    'a log without levels',
    { configuration, log: { info: () => undefined, warn: 'x' } },
    [
      'options log.debug: expected a function, got undefined',
      'options log.warn: expected a function, got a string',
      'options log.error: expected a function, got undefined',
    ],
  ],
  ['a text', { configuration, listen: 'false' }, ['options listen: expected true or false, got a string']],
  ['no files', { configuration: { files: [] } }, ['configuration files: expected at least one path; name the file']],
  ['a number as file', { configuration: { files: [5] } }, ['configuration files[0]: expected a path, got a number']],
])('refuses %s', async ([, options, problems]) => {
  const error: unknown = await created(options).then(
    (gateway) => gateway.close(),
    (e: unknown) => e,
  )
  expect(error).toBeInstanceOf(ConfigError)
  expect((error as ConfigError).message.split('\n')).toEqual(problems)
})

const cycle: Record<string, unknown> = { servers: {} }
cycle['listen'] = { http: cycle }

test.for<readonly [what: string, given: unknown, problem: string]>([
  ['a promise', Promise.resolve(configuration), 'configuration: expected plain data, got a Promise; await it'],
  ['a Map', new Map([['servers', {}]]), 'configuration: expected plain data, got a Map; write an object'],
  ['a Map inside', { listen, servers: new Map() }, 'configuration servers: expected plain data, got a Map; write an object'],
  ['a Date inside', { listen, naming: new Date() }, 'configuration naming: expected plain data, got a Date; write a text'],
  ['a function inside', { listen, naming: layer }, 'configuration naming: expected plain data, got a function; write a value'],
  ['a cycle', cycle, 'configuration listen.http: contains itself; write plain data'],
])('refuses a configuration with %s', async ([, given, problem]) => {
  const error: unknown = await created({ configuration: given, listen: false, log: silent }).then(
    (gateway) => gateway.close(),
    (e: unknown) => e,
  )
  expect(error).toBeInstanceOf(ConfigError)
  expect((error as ConfigError).message).toBe(problem)
})

test('takes URLs, undefined members and the same object in two places', async () => {
  const server = { url: new URL('http://127.0.0.1:9/mcp'), prefix: undefined, lifecycle: { start: 'lazy' } }
  await using gateway = await created({ configuration: { listen, servers: { a: server, b: server } }, log: silent })
  expect(gateway.servers().map(({ key }) => key)).toEqual(['a', 'b'])
})

test('T-14 a log of the program gets no secret, neither in facts nor in texts', async () => {
  const lines: string[] = []
  const { promise: echoed, resolve } = Promise.withResolvers<void>()
  const take = (facts: object, text: string): void => {
    lines.push(`${JSON.stringify(facts)} ${text}`)
    if (text.startsWith('echo')) resolve()
  }
  const log: Log = { debug: take, info: take, warn: take, error: take }
  await using gateway = await createGateway({ configuration: { listen, servers: { a: fake('chatty') } }, log })
  await gateway.call('a__echo', { text: SECRET })
  await echoed
  expect(lines).toContain('{"server":"a"} echo ***')
  expect(lines.join('\n')).not.toContain(SECRET)
})

test('a log that throws ends neither the process nor a call', async () => {
  const uncaught: unknown[] = []
  const note = (error: unknown): void => void uncaught.push(error)
  process.on('uncaughtException', note)
  const raise = (): never => {
    throw new Error('the disk is full')
  }
  try {
    const log: Log = { debug: raise, info: raise, warn: raise, error: raise }
    await using gateway = await createGateway({ configuration: { listen, servers: { a: fake('good') } }, log })
    expect(await gateway.call('a__echo', { text: 'x' })).toMatchObject({ isError: false })
  } finally {
    process.off('uncaughtException', note)
  }
  expect(uncaught).toEqual([])
})

test('warnings about the configuration are logged, at the start and by a reload each one once', async () => {
  const warned: string[] = []
  const log: Log = { ...silent, warn: (_facts, text) => void warned.push(text) }
  await using gateway = await createGateway({ configuration: { listen, servers: {}, include: ['none-*.yaml'] }, log })
  const missing = 'configuration: no file matches none-*.yaml'
  expect(warned).toEqual([missing, 'no server is configured'])
  await gateway.reload({ listen, servers: {}, include: ['none-*.yaml', 'other-*.yaml'] })
  expect(warned.slice(2)).toEqual(['configuration: no file matches other-*.yaml'])
})

/** The lines that a gateway without a log of the program writes to stderr, with their levels. */
const linesOf = async (
  configuration: object,
  use: (gateway: EmbeddedGateway) => Promise<unknown>,
): Promise<readonly string[]> => {
  const written = vi.spyOn(process.stderr, 'write').mockReturnValue(true)
  try {
    await using gateway = await created({ configuration })
    await use(gateway)
    const lines = written.mock.calls.map(([line]) => JSON.parse(String(line)) as { level: number; msg: string })
    return lines.map(({ level, msg }) => `${level} ${msg}`)
  } finally {
    written.mockRestore()
  }
}
const NO_SERVER = '40 no server is configured'

test.for<readonly [what: string, level: string | undefined, lines: readonly string[]]>([
  ['warnings where no level is configured', undefined, [NO_SERVER]],
  ['no warnings at the level error', 'error', []],
])('the log on stderr has %s', async ([, level, lines]) => {
  const telemetry = { log: { format: 'json', level } }
  expect(await linesOf({ listen, servers: {}, telemetry }, (gateway) => Promise.resolve(gateway))).toEqual(lines)
})

test('the log on stderr has the state of servers at the level info', async () => {
  const telemetry = { log: { format: 'json', level: 'info' } }
  const lines = await linesOf({ listen, servers: { a: fake('good') }, telemetry }, (gateway) =>
    gateway.call('a__echo', { text: 'x' }),
  )
  expect(lines).toContain('30 server is ready')
})

test('a reload changes the level of the log on stderr, also for its own warnings', async () => {
  const next = (level: string | undefined) => ({
    listen,
    servers: {},
    include: ['none-*.yaml'],
    telemetry: { log: { format: 'json', level } },
  })
  const first = { listen, servers: {}, telemetry: { log: { format: 'json', level: 'error' } } }
  const missing = '40 configuration: no file matches none-*.yaml'
  expect(await linesOf(first, (gateway) => gateway.reload(next(undefined)))).toEqual([missing])
  expect(await linesOf({ ...first, telemetry: undefined }, (gateway) => gateway.reload(next('error')))).toEqual([NO_SERVER])
})
