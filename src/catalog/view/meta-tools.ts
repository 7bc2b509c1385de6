/**
 * The three tools of the gateway that replace a long list: search, describe, call (DECISIONS 5). Their texts depend only on the
 * configuration and the caller, so that their list does not change during a conversation.
 */
import { cleanLabel } from '../../wire/protocol/label.ts'
import type { CatalogServer, Exposed } from '../catalog.ts'

export const SEARCH_TOOLS = 'gateway__search_tools'
export const DESCRIBE_TOOL = 'gateway__describe_tool'
export const CALL_TOOL = 'gateway__call_tool'

/** Number of answers to one search: default and maximum. */
export const DEFAULT_ANSWERS = 5
export const MAX_ANSWERS = 20

/** Names of servers in a description. */
const MAX_NAMED = 40

const GATEWAY: CatalogServer = {
  key: 'gateway',
  prefix: 'gateway',
  displayName: 'Trunkline',
  alias: {},
  uris: 'identity',
  unaliasArguments: false,
  decorateTitles: false,
  instructions: false,
  apps: false,
  trusted: true,
  tags: [],
  curation: undefined,
}

/** Whether this is a name of the gateway's own tools. */
export const isMetaTool = (name: string | undefined): boolean =>
  name === SEARCH_TOOLS || name === DESCRIBE_TOOL || name === CALL_TOOL

/** The rows of the three tools. `servers`: those that the caller sees, in configuration order. */
export const metaTools = (servers: readonly CatalogServer[]): Exposed[] => {
  const names = servers.slice(0, MAX_NAMED).map(({ displayName }) => cleanLabel(displayName))
  const list = `${names.join(', ')}${servers.length > MAX_NAMED ? ' and more' : ''}`
  return definitions(list).map((definition) => ({
    server: GATEWAY,
    position: -1,
    entry: {
      original: definition.name.slice('gateway__'.length),
      raw: Buffer.from(JSON.stringify(definition)),
      paramHeaders: [],
    },
    exposed: definition.name,
  }))
}

const definitions = (servers: string): { readonly name: string; readonly [member: string]: unknown }[] => [
  {
    name: SEARCH_TOOLS,
    title: 'Search tools',
    description:
      `Finds tools by what they do. Most tools are not listed here: search for the one you need, look at it with ${DESCRIBE_TOOL}, ` +
      `use it with ${CALL_TOOL}. Say what is to be done and to what, in a few words; name the server if you know it. Servers: ${servers}.`,
    inputSchema: {
      type: 'object',
      properties: {
        query: { type: 'string', description: 'What is to be done, such as "add a comment to an issue".' },
        limit: { type: 'integer', minimum: 1, maximum: MAX_ANSWERS, default: DEFAULT_ANSWERS, description: 'How many answers.' },
      },
      required: ['query'],
      additionalProperties: false,
    },
    annotations: { readOnlyHint: true, openWorldHint: false },
  },
  {
    name: DESCRIBE_TOOL,
    title: 'Describe a tool',
    description: `The whole definition of one tool: what it does, and the schema of its arguments. Look before you use ${CALL_TOOL}.`,
    inputSchema: {
      type: 'object',
      properties: { name: { type: 'string', description: `The name of the tool, as ${SEARCH_TOOLS} gives it.` } },
      required: ['name'],
      additionalProperties: false,
    },
    annotations: { readOnlyHint: true, openWorldHint: false },
  },
  {
    name: CALL_TOOL,
    title: 'Call a tool',
    description: `Calls a tool that ${SEARCH_TOOLS} has found; what it answers is the answer of that tool.`,
    inputSchema: {
      type: 'object',
      properties: {
        name: { type: 'string', description: `The name of the tool, as ${SEARCH_TOOLS} gives it.` },
        arguments: { type: 'object', description: `What the tool takes, by the schema that ${DESCRIBE_TOOL} shows.` },
      },
      required: ['name'],
      additionalProperties: false,
    },
  },
]
