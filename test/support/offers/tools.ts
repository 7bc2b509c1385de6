/**
 * The tools every test server offers, whichever SDK serves it. The table knows no SDK; `reference/` and
 * `sdk1-offers.ts` register it each in its own way.
 */
import { setTimeout } from 'node:timers/promises'
import type { ServerState } from '../server-state.ts'

/** What a tool may do with its own call while it runs. */
export interface Conversation {
  signal: AbortSignal
  /** Sends a progress notification, if the caller asked for progress. */
  report(progress: number, total: number): Promise<void>
}

/** The kinds of argument these tools take. */
export type PropertySchema = { type: 'string' } | { type: 'string'; enum: string[] }

/** One row. */
export interface ToolOffer {
  name: string
  description: string
  inputSchema: { type: 'object'; properties: Record<string, PropertySchema>; required?: string[] }
  /** Returns the text of the one content block. */
  run: (args: Record<string, string>, call: Conversation, state: ServerState) => Promise<string> | string
}
const strings = (...names: string[]): ToolOffer['inputSchema'] => ({
  type: 'object',
  properties: Object.fromEntries(names.map((name) => [name, { type: 'string' }])),
  required: names,
})
const nothing: ToolOffer['inputSchema'] = { type: 'object', properties: {} }

/** In the order in which servers list them; the first takes no arguments, as the conformance suite expects. */
export const toolOffers: ToolOffer[] = [
  {
    name: 'test_simple_text',
    description: 'Returns one text',
    inputSchema: nothing,
    run: () => 'This is a simple text response for testing.',
  },
  { name: 'echo', description: 'Returns its text', inputSchema: strings('text'), run: ({ text }) => text ?? '' },
  {
    name: 'test_tool_with_progress',
    // The pauses are for SDK clients: they drop progress that reaches them in one piece with the answer.
    description: 'Reports progress 0, 50 and 100 of 100 before it answers',
    inputSchema: nothing,
    async run(_, call) {
      for (const progress of [0, 50, 100]) {
        await call.report(progress, 100)
        await setTimeout(20)
      }
      return 'Progress is complete.'
    },
  },
  {
    name: 'report_until_seen',
    description: 'Reports progress 0, 50 and 100 of 100 and answers only once mark_seen was called with its key',
    inputSchema: strings('key'),
    async run({ key = '' }, call, state) {
      for (const progress of [0, 50, 100]) await call.report(progress, 100)
      await state.reached(key, 'seen')
      return 'Progress was seen.'
    },
  },
  {
    name: 'mark_seen',
    description: 'Lets report_until_seen with this key answer',
    inputSchema: strings('key'),
    run({ key = '' }, _, state) {
      state.mark(key, 'seen')
      return 'Marked.'
    },
  },
  {
    name: 'hold',
    description: 'Never answers; remembers under its key that it started and that it was cancelled',
    inputSchema: strings('key'),
    run: ({ key = '' }, { signal }, state) =>
      new Promise((_, reject) => {
        signal.addEventListener('abort', () => {
          state.mark(key, 'cancelled')
          reject(new Error('cancelled'))
        })
        state.mark(key, 'started')
      }),
  },
  {
    name: 'await_call',
    description: 'Answers once the hold with this key has started or was cancelled',
    inputSchema: {
      ...strings('key', 'reached'),
      properties: { key: { type: 'string' }, reached: { type: 'string', enum: ['started', 'cancelled'] } },
    },
    async run({ key = '', reached }, _, state) {
      await state.reached(key, reached === 'cancelled' ? 'cancelled' : 'started')
      return `${key} ${reached}`
    },
  },
  {
    name: 'test_trigger_tool_change',
    description: 'Adds extra_tool to the list or removes it',
    inputSchema: nothing,
    run(_, __, state) {
      state.toggle('tools')
      return 'The list of tools changed.'
    },
  },
  {
    name: 'test_trigger_prompt_change',
    description: 'Adds extra_prompt to the list or removes it',
    inputSchema: nothing,
    run(_, __, state) {
      state.toggle('prompts')
      return 'The list of prompts changed.'
    },
  },
  {
    name: 'touch_watched',
    description: 'Announces that test://watched-resource changed',
    inputSchema: nothing,
    run(_, __, state) {
      state.touch('test://watched-resource')
      return 'The watched resource changed.'
    },
  },
]
/** The tool that comes and goes. */
export const extraTool: ToolOffer = {
  name: 'extra_tool',
  description: 'Is not always here',
  inputSchema: nothing,
  run: () => 'extra',
}
