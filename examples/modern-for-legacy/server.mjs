/** A server of 2026-07-28 only, written with the official SDK 2: it refuses `initialize`, and one of its tools needs an answer. */
import { inputRequired, McpServer } from '@modelcontextprotocol/server'
import { serveStdio } from '@modelcontextprotocol/server/stdio'

/** @type {import('@modelcontextprotocol/server').McpServerFactory} */
const build = ({ era }) => {
  const server = new McpServer({ name: 'desk', version: '1.0.0' }, { capabilities: { tools: {} } })
  server.registerTool('era', { description: 'Says in which era it is spoken to' }, () => ({
    content: [{ type: 'text', text: `this call is ${era}` }],
  }))
  server.registerTool('book_desk', { description: 'Books a desk; asks for the floor' }, ({ mcpReq }) => {
    const answer = mcpReq.inputResponses?.['floor']
    if (answer === undefined) {
      const requestedSchema = { type: 'object', properties: { floor: { type: 'string' } }, required: ['floor'] }
      return inputRequired({ inputRequests: { floor: inputRequired.elicit({ message: 'Which floor?', requestedSchema }) } })
    }
    const text = answer.action === 'accept' ? `booked on floor ${answer.content?.floor}` : 'nothing booked'
    return { content: [{ type: 'text', text }] }
  })
  return server
}

serveStdio(build, { legacy: 'reject' })
