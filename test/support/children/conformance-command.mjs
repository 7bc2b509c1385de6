/**
 * The command that the conformance suite starts for a scenario: `conformance-command.mjs PORT URL`. It passes on what the suite says to
 * the clients that wait at the port (conformance-client.ts), and ends with 1 and their error when a call did not work. Plain JavaScript,
 * which starts quickest.
 */
import { connect } from 'node:net'
import { text } from 'node:stream/consumers'

const [port, url] = process.argv.slice(2)
const { MCP_CONFORMANCE_SCENARIO: scenario, MCP_CONFORMANCE_CONTEXT: context = '{}' } = process.env
const socket = connect({ port: Number(port), host: '127.0.0.1', allowHalfOpen: true })
socket.end(JSON.stringify({ url, scenario, context: JSON.parse(context) }))
const failed = await text(socket)
if (failed !== '') {
  process.stderr.write(`${failed}\n`)
  process.exitCode = 1
}
