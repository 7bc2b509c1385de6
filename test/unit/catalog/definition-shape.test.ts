/** Definitions that break the schema of the protocol, and what hosts see of them (B018, B282; decision 0191). The official SDK is the judge. */
import {
  ListPromptsResultSchema,
  ListResourcesResultSchema,
  ListResourceTemplatesResultSchema,
  ListToolsResultSchema,
} from '@modelcontextprotocol/sdk/types.js'
import { expect, test } from 'vitest'
import { checkShape } from '../../../src/catalog/definition-shape.ts'
import type { ListKind } from '../../../src/catalog/inventory.ts'
import { edited } from '../../../src/wire/message/members.ts'

/** Whether a host with the official SDK for TypeScript accepts a list with this definition. */
const accepts = (kind: ListKind, definition: string): boolean => {
  const list = [JSON.parse(definition) as unknown]
  if (kind === 'tools') return ListToolsResultSchema.safeParse({ tools: list }).success
  if (kind === 'prompts') return ListPromptsResultSchema.safeParse({ prompts: list }).success
  if (kind === 'resources') return ListResourcesResultSchema.safeParse({ resources: list }).success
  return ListResourceTemplatesResultSchema.safeParse({ resourceTemplates: list }).success
}

const shownOf = (kind: ListKind, definition: string) => {
  const raw = Buffer.from(definition)
  const { fault, edits, notes } = checkShape(raw, kind)
  return { fault, notes, shown: edited(raw, edits).toString() }
}

const OBJECT = '"inputSchema":{"type":"object"}'

test.each<[string, ListKind, string, string]>([
  ['{} as schema', 'tools', '{"name":"x","inputSchema":{}}', `{"name":"x",${OBJECT}}`],
  [
    'a dialect alone',
    'tools',
    '{"name":"x","inputSchema":{"$schema":"s"}}',
    '{"name":"x","inputSchema":{"type":"object","$schema":"s"}}',
  ],
  [
    'alternatives without a type',
    'tools',
    '{"name":"x","inputSchema":{ "anyOf":[{"type":"object"}],"n":1.0}}',
    '{"name":"x","inputSchema":{"type":"object", "anyOf":[{"type":"object"}],"n":1.0}}',
  ],
  ['a null type', 'tools', '{"name":"x","inputSchema":{"type":null}}', `{"name":"x",${OBJECT}}`],
  ['only null members', 'tools', '{"name":"x","inputSchema":{"properties":null,"required":null}}', `{"name":"x",${OBJECT}}`],
  [
    'null for no required members',
    'tools',
    '{"name":"x","inputSchema":{"type":"object","properties":{"a":{"default":null}},"required":null}}',
    '{"name":"x","inputSchema":{"type":"object","properties":{"a":{"default":null}}}}',
  ],
  [
    'true and false as schemas of properties',
    'tools',
    `{"name":"x","outputSchema":{"type":"object","properties":{"a":true,"b":false}},${OBJECT}}`,
    `{"name":"x","outputSchema":{"type":"object","properties":{"a":{},"b":{"not":{}}}},${OBJECT}}`,
  ],
  [
    'null for what it does not have',
    'tools',
    `{"title":null,"name":"x","description":null,"annotations":{"title":null,"readOnlyHint":true,"idempotentHint":null},"icons":null,"execution":null,${OBJECT},"outputSchema":null,"_meta":null}`,
    `{"name":"x","annotations":{"readOnlyHint":true},${OBJECT}}`,
  ],
  ['null and empty', 'resources', '{"uri":"x:1","name":"","mimeType":null,"size":null}', '{"uri":"x:1","name":""}'],
  [
    'null',
    'templates',
    '{"uriTemplate":"x:{a}","name":"x","annotations":{"audience":null}}',
    '{"uriTemplate":"x:{a}","name":"x","annotations":{}}',
  ],
  [
    'null in an argument',
    'prompts',
    '{"name":"x","arguments":[{"name":"a","description":null},{"name":"b","required":null}]}',
    '{"name":"x","arguments":[{"name":"a"},{"name":"b"}]}',
  ],
])('B282 a definition with %s is shown in the spelling of the schema', (_what, kind, definition, expected) => {
  expect(accepts(kind, definition)).toBe(false)
  expect(shownOf(kind, definition)).toEqual({ fault: undefined, notes: [], shown: expected })
  expect(accepts(kind, expected)).toBe(true)
})

test.each<[ListKind, string, string, string]>([
  ['tools', `{"name":"x","outputSchema":[],${OBJECT}}`, `{"name":"x",${OBJECT}}`, 'outputSchema is not an object'],
  [
    'tools',
    `{"name":"x",${OBJECT},"annotations":{"readOnlyHint":"true","title":"t"}}`,
    `{"name":"x",${OBJECT},"annotations":{"title":"t"}}`,
    'annotations.readOnlyHint is not true or false',
  ],
  [
    'tools',
    '{"name":"x","inputSchema":{"type":"object","properties":{"a":"text"}}}',
    `{"name":"x",${OBJECT}}`,
    'inputSchema.properties.a is not a schema',
  ],
  [
    'tools',
    '{"name":"x","inputSchema":{"properties":{"a":true,"b":1},"required":true}}',
    `{"name":"x",${OBJECT}}`,
    'inputSchema.properties.b is not a schema',
  ],
  ['tools', `{"name":"x","icons":[{"src":null}],${OBJECT}}`, `{"name":"x",${OBJECT}}`, 'icons[].src is null'],
  [
    'tools',
    `{"name":"x","icons":[{"src":"a","sizes":"48x48","theme":"blue"}],${OBJECT}}`,
    `{"name":"x","icons":[{"src":"a"}],${OBJECT}}`,
    'icons[].sizes is not a list of texts',
  ],
  [
    'tools',
    `{"name":"x","execution":{"taskSupport":"never"},${OBJECT}}`,
    `{"name":"x","execution":{},${OBJECT}}`,
    'execution.taskSupport is not required, optional or forbidden',
  ],
  [
    'resources',
    '{"uri":"x:1","name":"x","annotations":{"priority":1.5,"audience":["user","model"],"lastModified":"2025-01-12T15:00:58"}}',
    '{"uri":"x:1","name":"x","annotations":{}}',
    'annotations.priority is not a number from 0 to 1',
  ],
  ...['2025-01-12', '2025-01-12T15:00:58', 'yesterday', '2025-01-12T15:00Z', '2025-01-12T15:00:58+0100'].map(
    (time): [ListKind, string, string, string] => [
      'resources',
      `{"uri":"x:1","name":"x","annotations":{"lastModified":"${time}"}}`,
      '{"uri":"x:1","name":"x","annotations":{}}',
      'annotations.lastModified is not a time with its zone',
    ],
  ),
  ['resources', '{"uri":"x:1","name":"x","size":"1 MB"}', '{"uri":"x:1","name":"x"}', 'size is not a number'],
  ['prompts', '{"name":"x","arguments":[{"description":"d"}]}', '{"name":"x"}', 'has no arguments[].name'],
])('a definition in %s with a broken optional member is shown without it: %s', (kind, definition, expected, note) => {
  expect(accepts(kind, definition)).toBe(false)
  const { fault, notes, shown } = shownOf(kind, definition)
  expect([fault, notes[0], shown]).toEqual([undefined, `${note}; served without`, expected])
  expect(accepts(kind, shown)).toBe(true)
})

test.each<[ListKind, string, string]>([
  ['tools', '{"name":"x"}', 'has no inputSchema'],
  ['tools', '{"name":"x","inputSchema":null}', 'inputSchema is null'],
  ['tools', '{"name":"x","inputSchema":[]}', 'inputSchema is not an object'],
  ['tools', '{"name":"x","inputSchema":true}', 'inputSchema is not an object'],
  ['tools', '{"name":"x","inputSchema":{"type":"string"}}', 'inputSchema is not of type object'],
  ['tools', '{"name":"x","inputSchema":{"type":["object","null"]}}', 'inputSchema is not of type object'],
  ['resources', '{"uri":"x:1"}', 'has no name'],
  ['templates', '{"uriTemplate":"x:1","name":7}', 'name is not a text'],
])('a definition in %s that has no usable required member is left out: %s', (kind, definition, fault) => {
  expect(accepts(kind, definition)).toBe(false)
  expect(shownOf(kind, definition).fault).toBe(fault)
})

test.each<[ListKind, string]>([
  ['tools', `{"name":"x","x-vendor":null,"_meta":{"a":null},${OBJECT},"outputSchema":{"type":"object","x":null}}`],
  ['tools', '{"name":"x","inputSchema":{"type":"object","properties":{"a":{"type":"null","default":null}},"default":null}}'],
  ['resources', '{"uri":"x:1","name":"x","size":9007199254740993,"annotations":{"priority":1.0,"x":null}}'],
  ['prompts', '{"name":"x","arguments":[],"n":1.0}'],
  [
    'tools',
    `{"name":"x","icons":[{"src":"a","sizes":["48x48"],"theme":"dark"}],"execution":{"taskSupport":"optional"},${OBJECT}}`,
  ],
  ...['2025-01-12T15:00:58Z', '2025-01-12T15:00:58.123456+01:00'].map((time): [ListKind, string] => [
    'resources',
    `{"uri":"x:1","name":"x","annotations":{"audience":["user","assistant"],"priority":0.50,"lastModified":"${time}"}}`,
  ]),
])('B018 every other byte stays, and what the schema does not know may be anything: %s', (kind, definition) => {
  expect(shownOf(kind, definition)).toEqual({ fault: undefined, notes: [], shown: definition })
  expect(accepts(kind, definition)).toBe(true)
})
