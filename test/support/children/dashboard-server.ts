/**
 * A server on a pipe with tools as people have them, for the dashboard: `search_code` (takes `org`, answers structured content),
 * `list_pulls` (a link), `create_issue` (asks the person first), `export_report` (takes `seconds`), `read_notes` (a text full of markup,
 * escapes and turned letters), `fail`. With a file as argument it describes `list_pulls` by the text of that file. Shares no code with `src/`.
 */
import { existsSync, readFileSync } from 'node:fs'
import { createInterface } from 'node:readline'

interface Message {
  readonly id?: number | string
  readonly method?: string
  readonly result?: unknown
  readonly params?: {
    readonly name?: string
    readonly protocolVersion?: string
    readonly arguments?: Readonly<Record<string, unknown>>
  }
}

const [wordsFile = ''] = process.argv.slice(2)
const say = (message: object): void => void process.stdout.write(`${JSON.stringify({ jsonrpc: '2.0', ...message })}\n`)
const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms))
const HOSTILE =
  '<img src=x onerror="document.title=1"><script>document.title=2</script> \u001b[31mred\u001b[0m \u202eerif no era uoy\u202c &amp; ```'

const tool = (
  name: string,
  description: string,
  properties: object,
  required: string[] = [],
  annotations: object = {},
): object => ({
  name,
  description,
  inputSchema: { type: 'object', properties, required },
  annotations,
})
const READ = { readOnlyHint: true }
const tools = (): object[] => [
  tool(
    'search_code',
    'Searches code of all repositories of one organization.',
    {
      query: { type: 'string', description: 'Words, or a regular expression between slashes', minLength: 2 },
      org: { type: 'string', description: 'Organization' },
      per_page: { type: 'integer', minimum: 1, maximum: 100, default: 30 },
      sort: { enum: ['best', 'recent'], description: 'Order of the results' },
      languages: { type: 'array', items: { type: 'string' }, description: 'Only these' },
      archived: { type: 'boolean' },
      range: {
        type: 'object',
        description: 'When it was pushed',
        properties: { from: { type: 'string', format: 'date' }, to: { type: 'string', format: 'date' } },
      },
      options: { type: 'object', description: 'Anything else' },
    },
    ['query', 'org'],
    READ,
  ),
  tool(
    'list_pulls',
    existsSync(wordsFile) ? readFileSync(wordsFile, 'utf8') : 'Lists open pull requests, newest first.',
    { repository: { type: 'string' } },
    ['repository'],
    READ,
  ),
  tool('create_issue', 'Opens an issue.', { title: { type: 'string' }, body: { type: 'string' } }, ['title']),
  tool('export_report', 'Exports a report of the last month. Takes a while.', { seconds: { type: 'number' } }, [], READ),
  tool('read_notes', 'Reads notes that users have written.', {}, [], READ),
  tool('fail', 'Always fails.', {}, [], READ),
]

let asked = 1_000
const waiting = new Map<number | string, (answer: Message) => void>()
const askHost = (params: object): Promise<Message> => {
  const id = asked++
  say({ id, method: 'elicitation/create', params })
  return new Promise((resolve) => waiting.set(id, resolve))
}
const text = (words: string): object => ({ content: [{ type: 'text', text: words }] })

const call = async (name: string | undefined, args: Readonly<Record<string, unknown>>): Promise<object> => {
  switch (name) {
    case 'search_code': {
      await pause(25)
      const items = [1, 2, 3].map((at) => ({
        repository: `${String(args['org'])}/service-${at}`,
        path: `src/main-${at}.ts`,
        score: 1 / at,
      }))
      return { content: [{ type: 'text', text: JSON.stringify(items) }], structuredContent: { total: 3, items } }
    }
    case 'list_pulls':
      await pause(8)
      return {
        content: [
          { type: 'text', text: '#4121 Retry on 429\n#4118 Faster start' },
          { type: 'resource_link', uri: 'file:///pulls/4121.diff', name: '4121.diff', mimeType: 'text/x-diff' },
        ],
      }
    case 'create_issue': {
      const answer = await askHost({
        message: `Open the issue "${String(args['title'])}"?`,
        requestedSchema: { type: 'object', properties: { ok: { type: 'boolean' } } },
      })
      return text(`Opened #4130 (${JSON.stringify(answer.result)})`)
    }
    case 'export_report':
      await pause(Number(args['seconds'] ?? 1) * 1_000)
      return text('12,431 rows exported to reports/october.csv')
    case 'read_notes':
      return { ...text(HOSTILE), structuredContent: { [HOSTILE]: HOSTILE } }
    default:
      process.stderr.write('GET /rate_limit 403\n')
      return { ...text('API rate limit exceeded for user 4711'), isError: true }
  }
}

process.stderr.write('connected to api.example.com\nlistening on stdio\n')
createInterface(process.stdin).on('line', (line) => {
  const message = JSON.parse(line) as Message
  const { id, method, params } = message
  if (id === undefined) return
  if (method === undefined) return waiting.get(id)?.(message)
  if (method === 'initialize')
    return say({
      id,
      result: {
        protocolVersion: params?.protocolVersion,
        capabilities: { tools: { listChanged: true } },
        serverInfo: { name: 'code', version: '2.4.1' },
      },
    })
  if (method === 'tools/list') return say({ id, result: { tools: tools() } })
  if (method === 'tools/call') return void call(params?.name, params?.arguments ?? {}).then((result) => say({ id, result }))
  return say(method === 'ping' ? { id, result: {} } : { id, error: { code: -32601, message: 'Method not found' } })
})
