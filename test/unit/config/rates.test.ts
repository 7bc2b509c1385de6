/** Every rate limit of a configuration, under the path by which it is known in errors, `ps` and the audit log. */
import { expect, test } from 'vitest'
import { yaml } from './workspace.ts'

test('limits of principals, toolsets, servers and tools; what is inherited is of whoever inherits it', async () => {
  await using files = await yaml(`
limits: { rate_per_principal: 300/m }
defaults: { limits: { rate: 50/s } }
servers:
  a: { command: x, limits: { rate: 10/s }, tools: { delete_it: { rate: 5/2m } } }
  b: { command: x }
toolsets:
  ops: { servers: [a], limits: { rate: 7/s } }
  night: { extends: ops }
  day: { extends: ops, limits: { rate: 9/s } }
`)
  const { gateway } = await files.load()
  expect(gateway.rates.map(({ option, rate, of }) => [option, rate.text, of])).toEqual([
    ['limits.rate_per_principal', '300/m', { kind: 'principal' }],
    ['toolsets.ops.limits.rate', '7/s', { kind: 'toolset', toolset: 'ops' }],
    ['toolsets.night.limits.rate', '7/s', { kind: 'toolset', toolset: 'night' }],
    ['toolsets.day.limits.rate', '9/s', { kind: 'toolset', toolset: 'day' }],
    ['servers.a.limits.rate', '10/s', { kind: 'server', server: 'a' }],
    ['servers.b.limits.rate', '50/s', { kind: 'server', server: 'b' }],
    ['servers.a.tools.delete_it.rate', '5/2m', { kind: 'tool', server: 'a', original: 'delete_it' }],
  ])
})

test('two toolsets that say different rates need a third that decides', async () => {
  const toolsets = (more: string): string =>
    `servers: { a: { command: x } }\ntoolsets:\n  one: { limits: { rate: 1/s } }\n  two: { limits: { rate: 2/s } }\n  both: { extends: [one, two]${more} }\n`
  await using files = await yaml(toolsets(''))
  expect(await files.errors()).toEqual([expect.stringContaining('"one" and "two" set different values for limits.rate')])
  await files.write('trunkline.yaml', toolsets(', limits: { rate: 3/s }'))
  expect((await files.load()).gateway.rates.map(({ rate }) => rate.text)).toEqual(['1/s', '2/s', '3/s'])
})
