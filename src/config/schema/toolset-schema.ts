/** What may stand under `toolsets.<name>`. */
import { z } from 'zod'
import { DEFAULT_BUDGET } from '../../catalog/view/toolset.ts'
import { hints } from './curation-schema.ts'
import { amount, choice, field, filledText, rate, texts } from './kinds.ts'

export const TOOLSET_NAME = /^[a-z][a-z0-9-]{0,39}$/

const override = z.strictObject({
  title: field(filledText, 'Its title.'),
  description: field(filledText, 'Its description.'),
  annotations: hints('What is said of it in place of, and beside, what the server says.'),
})

export const toolsetSchema = z.strictObject({
  description: field(filledText, 'Begins the instructions of its endpoint.'),
  extends: field(
    texts,
    'Toolsets it takes everything from: of several it holds what any of them does. What is said here stands in place of what they say.',
  ),
  servers: field(texts, 'Whose: keys of servers, patterns of keys (`*`, `?`), or tags. All without it.'),
  tools: field(
    texts,
    'Patterns of exposed names. As soon as tools, resources or prompts are named, nothing is in it but what is named.',
  ),
  resources: field(texts, 'Patterns of exposed URIs and templates; `*` and `?` end at a `/`, `**` does not.'),
  prompts: field(texts, 'Patterns of exposed names.'),
  where: hints('What must hold of its tools. Annotations are believed of servers with `trusted: true`, and of overrides.'),
  override: field(
    z.record(z.string(), override),
    'What is said of single tools, by exposed name; wins over what is said at the server.',
  ),
  confirm: field(
    texts,
    'Patterns of tools: before each call a person is asked, by form elicitation. Hosts that cannot ask are refused.',
  ),
  discovery: field(
    choice('full', 'search', 'auto'),
    'Tools are listed; or searched for; or searched for as soon as they exceed the budget.',
    'full',
  ),
  always: field(texts, 'Patterns of tools that are listed also where the others are searched for.'),
  budget: field(
    z.strictObject({
      tools: field(amount, `How many; with \`discovery: auto\` ${DEFAULT_BUDGET.tools} if nothing is said.`),
      tokens: field(
        amount,
        `Their definitions, estimated: bytes divided by 4; with \`discovery: auto\` ${DEFAULT_BUDGET.tokens / 1_000}k if nothing is said.`,
      ),
    }),
    'What its tools may cost a model. What is more is told in `ps` and the log, and with `discovery: auto` searched for.',
  ),
  limits: field(
    z.strictObject({ rate: field(rate, 'Calls of all who have it together; more are refused with `rate_limited`.') }),
    'Limits of the toolset.',
  ),
})

export type ToolsetEntry = z.output<typeof toolsetSchema>
