/**
 * Offers that need something from the host: elicitation, sampling, roots. Each asks by returning `inputRequired`;
 * towards a legacy host the SDK sends the requests itself and enters the handler again with the answers.
 */
import { inputRequired } from '@modelcontextprotocol/server'
import type {
  CallToolResult,
  InputRequest,
  InputRequiredResult,
  McpServer,
  RequestStateCodec,
  ServerContext,
} from '@modelcontextprotocol/server'
import { fromJsonSchema } from '@modelcontextprotocol/server'
import { everyDefault, everyEnum } from './elicitation-schemas.ts'

type State = Record<string, string>
type Answered = CallToolResult | InputRequiredResult

const done = (value: string): CallToolResult => ({ content: [{ type: 'text', text: value }] })

const form = (message: string, field: string, type: 'string' | 'boolean' = 'string'): InputRequest =>
  inputRequired.elicit({
    message,
    requestedSchema: { type: 'object', properties: { [field]: type === 'string' ? { type } : { type } }, required: [field] },
  })
const sample = (prompt: string, maxTokens = 100): InputRequest =>
  inputRequired.createMessage({ messages: [{ role: 'user', content: { type: 'text', text: prompt } }], maxTokens })

const askName = () => form('What is your name?', 'user_name')
const confirm = () => form('Please confirm', 'ok', 'boolean')

/** Asks until every one of `requests` has an answer, then hands the answers to `finish`. */
const ask =
  (requests: Record<string, InputRequest>, finish: (answers: Record<string, unknown>) => CallToolResult) =>
  ({ mcpReq }: ServerContext): Answered => {
    const answers = mcpReq.inputResponses ?? {}
    const missing = Object.entries(requests).filter(([key]) => answers[key] === undefined)
    return missing.length === 0 ? finish(answers) : inputRequired({ inputRequests: Object.fromEntries(missing) })
  }

const simple: Record<string, (context: ServerContext) => Answered> = {
  test_elicitation_sep1034_defaults: ask({ form: everyDefault }, ({ form }) => done(`Elicitation completed: ${answer(form)}`)),
  test_elicitation_sep1330_enums: ask({ form: everyEnum }, ({ form }) => done(`Elicitation completed: ${answer(form)}`)),
  test_input_required_result_elicitation: ask({ user_name: askName() }, ({ user_name }) => done(`Hello, ${answer(user_name)}!`)),
  test_input_required_result_sampling: ask({ capital_question: sample('What is the capital of France?') }, (answers) =>
    done(JSON.stringify(answers)),
  ),
  test_input_required_result_list_roots: ask({ client_roots: inputRequired.listRoots() }, (answers) =>
    done(JSON.stringify(answers)),
  ),
  test_missing_capability: ask({ sampled: sample('Anything') }, (answers) => done(JSON.stringify(answers))),
  test_streaming_elicitation: ask({ user_name: askName() }, (answers) => done(JSON.stringify(answers))),
}

const answer = (value: unknown) => {
  const { action, content } = value as { action?: string; content?: unknown }
  return `action=${action}, content=${JSON.stringify(content ?? {})}`
}

/** Registers them on one SDK 2 server instance; `codec` seals the state that travels through the host. */
export const registerInputOffers = (server: McpServer, codec: RequestStateCodec<State>): void => {
  for (const [name, run] of Object.entries(simple)) server.registerTool(name, { description: 'Needs an answer' }, run)

  const oneString = (name: string) =>
    fromJsonSchema<State>({ type: 'object', properties: { [name]: { type: 'string' } }, required: [name] })
  server.registerTool('test_sampling', { description: 'Samples', inputSchema: oneString('prompt') }, ({ prompt = '' }, context) =>
    ask({ sampled: sample(prompt) }, ({ sampled }) => done(`LLM response: ${sampledText(sampled)}`))(context),
  )
  server.registerTool(
    'test_elicitation',
    { description: 'Elicits', inputSchema: oneString('message') },
    ({ message = '' }, context) =>
      ask({ form: form(message, 'response') }, ({ form }) => done(`User response: ${answer(form)}`))(context),
  )

  /** Asks once with sealed state, and answers when the state came back whole. */
  const askSealed = (name: string, requests: Record<string, InputRequest>) =>
    server.registerTool(name, { description: 'Needs answers and its state back' }, async ({ mcpReq }) => {
      if (mcpReq.requestState<State>()?.tool !== name) {
        return inputRequired({ inputRequests: requests, requestState: await codec.mint({ tool: name }) })
      }
      return done(`state-ok ${JSON.stringify(mcpReq.inputResponses)}`)
    })
  askSealed('test_input_required_result_request_state', { confirm: confirm() })
  askSealed('test_input_required_result_tampered_state', { confirm: confirm() })
  askSealed('test_input_required_result_multiple_inputs', {
    user_name: askName(),
    greeting: sample('Generate a greeting', 50),
    client_roots: inputRequired.listRoots(),
  })

  server.registerTool('test_input_required_result_multi_round', { description: 'Asks twice' }, async ({ mcpReq }) => {
    const state = mcpReq.requestState<State>()
    const { step1, step2 } = mcpReq.inputResponses ?? {}
    if (state === undefined) {
      const step1 = form('Step 1: What is your name?', 'name')
      return inputRequired({ inputRequests: { step1 }, requestState: await codec.mint({ round: '1' }) })
    }
    if (state.round === '1') {
      const step2 = form('Step 2: What is your favorite color?', 'color')
      return inputRequired({ inputRequests: { step2 }, requestState: await codec.mint({ round: '2', step1: answer(step1) }) })
    }
    return done(`${state.step1} ${answer(step2)}`)
  })

  server.registerTool('test_input_required_result_capabilities', { description: 'Asks for what the host can do' }, (context) => {
    // On a pipe the server object keeps no host's capabilities: each modern request brings its own.
    const envelope: Record<string, unknown> = { ...context.mcpReq.envelope }
    const declared = envelope['io.modelcontextprotocol/clientCapabilities'] ?? server.server.getClientCapabilities() ?? {}
    const capabilities = declared as { elicitation?: object; sampling?: object }
    return ask(
      {
        ...(capabilities.elicitation && { user_name: askName() }),
        ...(capabilities.sampling && { greeting: sample('Generate a greeting') }),
      },
      (answers) => done(JSON.stringify(answers)),
    )(context)
  })

  server.registerPrompt('test_input_required_result_prompt', { description: 'Needs context' }, ({ mcpReq }) => {
    const context = mcpReq.inputResponses?.user_context
    if (context === undefined) {
      const user_context = form('What context should the prompt use?', 'context')
      return inputRequired({ inputRequests: { user_context } })
    }
    return { messages: [{ role: 'user' as const, content: { type: 'text' as const, text: `Use ${answer(context)}` } }] }
  })
}

const sampledText = (result: unknown) => (result as { content?: { text?: string } }).content?.text
