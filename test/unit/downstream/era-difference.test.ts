/** What is said of a server that does not offer the same in both eras. */
import { expect, test } from 'vitest'
import { eraDifference } from '../../../src/downstream/lists/era-difference.ts'
import { inventoryOf, promptOf, resourceOf, templateOf, toolOf } from '../catalog/fixtures.ts'

test('each list has a sentence for each era whose names the other one lacks; more than five names are not spelled out', () => {
  const names = ['a', 'b', 'c', 'd', 'e', 'f']
  const modern = inventoryOf({ tools: [...names, 'both'].map((name) => toolOf(name)), prompts: [promptOf('p')] })
  const legacy = inventoryOf({
    tools: [toolOf('both'), ...names.slice(1).map((name) => toolOf(`old ${name}`))],
    resources: [resourceOf('x://r')],
    templates: [templateOf('x://{t}')],
    prompts: [promptOf('p')],
  })
  expect(eraDifference(modern, legacy)).toEqual([
    'the server offers 5 tools to legacy hosts only: old b, old c, old d, old e, old f',
    'the server offers 6 tools to hosts of 2026-07-28 only: a, b, c, d, e, …',
    'the server offers 1 resource to legacy hosts only: x://r',
    'the server offers 1 resource template to legacy hosts only: x://{t}',
  ])
  expect([eraDifference(modern, undefined), eraDifference(undefined, legacy), eraDifference(modern, modern)]).toEqual([
    [],
    [],
    [],
  ])
})
