/**
 * A raw MCP server on stdin and stdout, legacy era: `node bench/stdio-server.ts healthy|hang|exit|flap`. `hang` reads and never answers,
 * `exit` ends at once, `flap` ends soon after each handshake.
 */
import { createAnswers, errorPieces, type Request } from './answers.ts'

const FLAP_MS = 300

const behaviour = process.argv[2] ?? 'healthy'
if (behaviour === 'exit') process.exit(1)
const answer = createAnswers('legacy')

const serve = (line: string) => {
  const request = JSON.parse(line) as Request
  if (behaviour === 'flap' && request.method === 'notifications/initialized') setTimeout(() => process.exit(1), FLAP_MS)
  if (behaviour === 'hang' || request.id === undefined) return
  process.stdout.cork()
  for (const piece of answer(request) ?? errorPieces(request.id, -32601, 'Method not found'))
    process.stdout.write(piece, 'latin1')
  process.stdout.write('\n')
  process.stdout.uncork()
}

let rest = ''
process.stdin.setEncoding('utf8').on('data', (text: string) => {
  const lines = (rest + text).split('\n')
  rest = lines.pop() ?? ''
  for (const line of lines) serve(line)
})
