/** `toolsets.<name>`. */
import { z } from 'zod'
import { DEFAULT_BUDGET } from '../../catalog/view/toolset.ts'
import { hints } from './curation-schema.ts'
import { amount, choice, field, filledText, rate, texts } from './kinds.ts'

export const TOOLSET_NAME = /^[a-z][a-z0-9-]{0,39}$/

const override = z.strictObject({
  title: field(filledText, 'Its title.'),
  description: field(filledText, 'Its description.'),
  annotations: hints('Annotations that replace or complete those of the server.'),
})

export const toolsetSchema = z.strictObject({
  description: field(filledText, 'Begins the instructions of its endpoint.'),
  extends: field(texts, 'Toolsets from which it inherits, or the union of several. Options here replace inherited ones.'),
  servers: field(texts, 'Keys of servers, patterns of keys (`*`, `?`), or tags. Default: all.'),
  tools: field(
    texts,
    'Patterns of exposed names. If tools, resources or prompts are named, the toolset contains only what is named.',
  ),
  resources: field(texts, 'Patterns of exposed URIs and templates; `*` and `?` do not match `/`, `**` does.'),
  prompts: field(texts, 'Patterns of exposed names.'),
  where: hints('Annotations that its tools must have. They are taken from servers with `trusted: true` and from overrides.'),
  override: field(z.record(z.string(), override), 'Changes to single tools, by exposed name; they win over those of the server.'),
  confirm: field(
    texts,
    'Patterns of tools: before each call a person is asked, by form elicitation. Calls of hosts without elicitation are refused.',
  ),
  discovery: field(
    choice('full', 'search', 'auto'),
    '`full`: tools are listed; `search`: they are found by search; `auto`: by search if they exceed the budget.',
    'full',
  ),
  always: field(texts, 'Patterns of tools that are listed even if the others are found by search.'),
  budget: field(
    z.strictObject({
      tools: field(amount, `Number of tools; default with \`discovery: auto\`: ${DEFAULT_BUDGET.tools}.`),
      tokens: field(
        amount,
        `Estimated tokens of their definitions (bytes divided by 4); default with \`discovery: auto\`: ${DEFAULT_BUDGET.tokens / 1_000}k.`,
      ),
    }),
    'Budget of the definitions of its tools. If they exceed it, `ps` and the log report that, and with `discovery: auto` the tools are found by search.',
  ),
  limits: field(
    z.strictObject({ rate: field(rate, 'Calls of all callers of this toolset together; more are refused with `rate_limited`.') }),
    'Limits of the toolset.',
  ),
})

export type ToolsetEntry = z.output<typeof toolsetSchema>
