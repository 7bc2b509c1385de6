/** The tools the conformance suite calls for their content, logging, errors, schema, headers and reconnection. */
import { setTimeout as sleep } from 'node:timers/promises'
import { fromJsonSchema } from '@modelcontextprotocol/server'
import type { CallToolResult, JsonSchemaType, McpServer } from '@modelcontextprotocol/server'
import { PNG } from '../offers/resources.ts'

const WAV = 'UklGRiYAAABXQVZFZm10IBAAAAABAAEAQB8AAAB9AAACABAAZGF0YQIAAAA='

const image = { type: 'image' as const, data: PNG, mimeType: 'image/png' }
const text = (value: string) => ({ type: 'text' as const, text: value })
const resource = (uri: string, mimeType: string, value: string) => ({
  type: 'resource' as const,
  resource: { uri, mimeType, text: value },
})

const fixed: Record<string, CallToolResult['content']> = {
  test_image_content: [image],
  test_audio_content: [{ type: 'audio', data: WAV, mimeType: 'audio/wav' }],
  test_embedded_resource: [resource('test://embedded-resource', 'text/plain', 'This is an embedded resource content.')],
  test_multiple_content_types: [
    text('Multiple content types test:'),
    image,
    resource('test://mixed-content-resource', 'application/json', '{"test":"data","value":123}'),
  ],
}

/** Keywords of JSON Schema 2020-12 that must reach the host unchanged [SEP-1613, SEP-2106]. */
const wideSchema = {
  $schema: 'https://json-schema.org/draft/2020-12/schema',
  type: 'object',
  $defs: {
    address: {
      $anchor: 'addressDef',
      type: 'object',
      properties: { street: { type: 'string' }, city: { type: 'string' } },
    },
  },
  properties: {
    name: { type: 'string' },
    address: { $ref: '#/$defs/address' },
    contactMethod: { type: 'string', enum: ['phone', 'email'] },
    phone: { type: 'string' },
    email: { type: 'string' },
  },
  allOf: [{ anyOf: [{ required: ['phone'] }, { required: ['email'] }] }],
  if: { properties: { contactMethod: { const: 'phone' } }, required: ['contactMethod'] },
  // oxlint-disable-next-line unicorn/no-thenable -- a JSON Schema keyword
  then: { required: ['phone'] },
  else: { required: ['email'] },
  additionalProperties: false,
}

/** `x-mcp-header` names the header that repeats the argument [2026-07-28 basic/transports/streamable-http]. */
const headerSchema: JsonSchemaType = {
  type: 'object',
  properties: { region: Object.assign({ type: 'string' as const }, { 'x-mcp-header': 'Region' }) },
  required: ['region'],
}

/** Registers them on one SDK 2 server instance. */
export const registerContentTools = (server: McpServer): void => {
  for (const [name, content] of Object.entries(fixed)) {
    server.registerTool(name, { description: 'Returns fixed content' }, () => ({ content }))
  }
  for (const name of ['test_tool_with_logging', 'test_logging_tool']) {
    server.registerTool(name, { description: 'Logs three messages before it answers' }, async ({ mcpReq }) => {
      for (const message of ['Tool execution started', 'Tool processing data', 'Tool execution completed']) {
        await mcpReq.log('info', message)
      }
      return { content: [text('Logged three messages.')] }
    })
  }
  server.registerTool('test_error_handling', { description: 'Always fails' }, () => {
    throw new Error('This tool intentionally returns an error for testing')
  })
  server.registerTool('test_reconnection', { description: 'Closes its stream before it answers' }, async ({ http }) => {
    http?.closeSSE?.()
    await sleep(400)
    return { content: [text('Answered after the stream was closed.')] }
  })
  server.registerTool(
    'json_schema_2020_12_tool',
    { description: 'Tool with JSON Schema 2020-12 features', inputSchema: fromJsonSchema(wideSchema) },
    (args) => ({ content: [text(JSON.stringify(args))] }),
  )
  server.registerTool(
    'test_header_argument',
    {
      description: 'Has an argument that travels in a header as well',
      inputSchema: fromJsonSchema<{ region: string }>(headerSchema),
    },
    ({ region }) => ({ content: [text(region)] }),
  )
}
