/** Toolsets, search, guides, history and edits of the configuration over the admin listener; one process serves all tests. */
import { readFileSync } from 'node:fs'
import { appendFile } from 'node:fs/promises'
import { expect, test } from 'vitest'
import { openAdmin } from '../../support/admin.ts'
import type { Admin } from '../../support/admin.ts'
import { commandLine } from '../../support/cli.ts'

const configurationOf = (server: string): string => `# kept
admin: { bind: "127.0.0.1:0" }   # the listener
ui: { write: true }
reload: { watch: false }
servers:
  one: ${server}   # in flow style
toolsets:
  echoes:
    description: What comes back
    tools: [one__echo] # by name
    budget: { tools: 1 }
`

const namesOf = async ({ ask }: Admin): Promise<readonly string[]> =>
  ((await ask('GET', '/api/tools')).json as { tools: { name: string }[] }).tools.map(({ name }) => name)

test('toolsets, search, guides, history, and an edit from its plan to the lists of hosts', async () => {
  await using cli = await commandLine()
  await cli.write('trunkline.yaml', configurationOf(cli.fake()))
  const { url } = await cli.up()
  const text = (): string => readFileSync(cli.path('trunkline.yaml'), 'utf8')
  const written = text()
  const admin = await openAdmin(cli)
  const { ask } = admin
  // Its lists are there once it has answered.
  expect((await cli.here('call', 'one__echo', 'text=x')).stdout).toBe('x\n')
  const all = await namesOf(admin)
  expect(all).toContain('one__echo')

  const toolsets = (await ask('GET', '/api/toolsets')).json
  expect(toolsets).toMatchObject({ whole: { tools: all.length, url } })
  expect(toolsets['toolsets']).toMatchObject([
    { name: 'echoes', description: 'What comes back', url: `${url}/echoes`, tools: 1, budget: { tools: 1 }, isOver: false },
  ])
  expect(toolsets['hosts']).toContainEqual(expect.objectContaining({ host: 'cursor', most: 40 }))

  const found = (await ask('GET', '/api/search?query=echo')).json as { tools: { name: string; server: string; score: number }[] }
  expect(found.tools[0]).toMatchObject({ name: 'one__echo', server: 'one' })
  expect(found.tools[0]?.score).toBeGreaterThan(0)
  expect((await ask('GET', '/api/search?query=echo&toolset=nothing')).status).toBe(404)
  expect((await ask('GET', '/api/search?query=fail&toolset=echoes')).json['tools']).toEqual([])

  const { guides } = (await ask('GET', '/api/guides?toolset=echoes')).json as { guides: { label: string; text: string }[] }
  expect(guides.find(({ label }) => label === 'Cursor')?.text).toContain(`${url}/echoes`)
  expect((await ask('GET', '/api/guides?toolset=nothing')).status).toBe(404)

  const change = { kind: 'tool', server: 'one', tool: 'echo', name: 'say', description: 'Says it back' }
  const planned = (await ask('POST', '/api/edit', { changes: [change] })).json
  expect(planned).toMatchObject({ kind: 'planned', files: [{ file: cli.path('trunkline.yaml') }] })
  expect(planned['plan']).toMatchObject({
    entries: expect.arrayContaining([expect.objectContaining({ name: 'one__say' })]) as unknown,
  })
  expect(text()).toBe(written)
  expect(await namesOf(admin)).toEqual(all)

  const { revision } = planned
  await appendFile(cli.path('trunkline.yaml'), '# by hand\n')
  const refused = await ask('POST', '/api/edit', { changes: [change], revision })
  expect([refused.status, refused.json]).toMatchObject([409, { error: { code: 'changed' } }])
  expect(text()).toBe(`${written}# by hand\n`)

  const again = (await ask('POST', '/api/edit', { changes: [change] })).json
  expect((await ask('POST', '/api/edit', { changes: [change], revision: again['revision'] })).json).toMatchObject({
    kind: 'applied',
  })
  expect(text()).toContain('# kept\nadmin: { bind: "127.0.0.1:0" }   # the listener\n')
  expect(text()).toContain('tools: { echo: { name: "say", description: "Says it back" } } }   # in flow style\n')
  expect(text()).toContain('# by hand\n')
  expect(await namesOf(admin)).toContain('one__say')

  const { changes } = (await ask('GET', '/api/history')).json as { changes: { entries: { name: string; change: string }[] }[] }
  const changed = changes.flatMap(({ entries }) => entries.map(({ name, change: how }) => `${how} ${name}`))
  expect(changed).toEqual(expect.arrayContaining(['added one__say', 'removed one__echo']))

  const bad = (await ask('POST', '/api/edit', { changes: [{ ...change, name: 'no such name!' }] })).json
  expect(bad).toMatchObject({ kind: 'refused', problems: [{ path: 'servers.one.tools.echo.name' }] })
  const asPattern = await ask('POST', '/api/edit', {
    changes: [{ kind: 'tool', server: 'one', tool: 'e*', hidden: true }],
  })
  expect([asPattern.status, asPattern.json]).toMatchObject([409, { error: { code: 'edit' } }])
})

test('tools that are switched off are listed with the rule that hides them, and the files with the place of each value', async () => {
  await using cli = await commandLine()
  await cli.write(
    'trunkline.yaml',
    `admin: { bind: "127.0.0.1:0" }
ui: { write: true }
servers:
  one:
    command: ${JSON.stringify(process.execPath)}
    args: ${cli.fake().replace(/^.*args: (\[.*\]).*$/, '$1')}
    env: { SERVICE_TOKEN: never-shown-1234 }
    filter: { deny: [fail, "ref*"] }
`,
  )
  await cli.up()
  const { ask } = await openAdmin(cli)
  expect((await cli.here('call', 'one__echo', 'text=x')).stdout).toBe('x\n')
  const { tools } = (await ask('GET', '/api/hidden')).json as { tools: { original: string }[] }
  expect(tools.toSorted((a, b) => (a.original < b.original ? -1 : 1))).toMatchObject([
    { name: 'one__fail', server: 'one', original: 'fail', isNamed: true, path: 'servers.one.filter.deny[0]' },
    { name: 'one__refuse', server: 'one', original: 'refuse', isNamed: false, path: 'servers.one.filter.deny[1]' },
  ])
  const settings = await ask('GET', '/api/settings')
  expect(settings.text).not.toContain('never-shown')
  const { settings: all, telemetry } = settings.json as {
    settings: { path: string; value: string; place: string }[]
    telemetry: object
  }
  expect(all).toContainEqual({ path: 'ui.write', value: 'true', place: `${cli.path('trunkline.yaml')}:2:7` })
  expect(all).toContainEqual(expect.objectContaining({ path: 'servers.one.env.SERVICE_TOKEN', value: '***' }))
  expect(telemetry).toEqual({ prometheus: '/metrics' })

  const change = { kind: 'tool', server: 'one', tool: 'refuse', hidden: false }
  const refused = await ask('POST', '/api/edit', { changes: [{ ...change, tool: 'fail' }, change] })
  expect([refused.status, refused.json]).toMatchObject([409, { error: { code: 'edit' } }])
  const planned = (await ask('POST', '/api/edit', { changes: [{ ...change, tool: 'fail' }] })).json
  const { revision } = planned
  await ask('POST', '/api/edit', { changes: [{ ...change, tool: 'fail' }], revision })
  expect(((await ask('GET', '/api/hidden')).json as { tools: object[] }).tools).toHaveLength(1)
  expect((await ask('GET', '/api/history')).json['reloads']).toMatchObject([{ end: 'applied', changed: [], entries: 1 }])
})
