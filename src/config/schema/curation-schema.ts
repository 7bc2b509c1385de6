/** What may be said of what a server offers: which of it is shown, and what is changed of single tools. */
import { z } from 'zod'
import { choice, count, duration, exposedName, field, filledText, flag, rate, text, texts } from './kinds.ts'

const hint = (description: string) => field(choice('deny', 'require'), description)

export const toolFilter = field(
  z.strictObject({
    allow: field(texts, 'Patterns (`*`, `?`) of the names that are shown; all without it.'),
    deny: field(texts, 'Patterns of names that are hidden, whatever allows them.'),
    annotations: field(
      z.strictObject({
        read_only: hint('Tools that say they only read.'),
        destructive: hint('Tools that may destroy; a tool that says nothing may.'),
        idempotent: hint('Tools that may be called twice with the effect of once.'),
        open_world: hint('Tools that reach beyond the server; a tool that says nothing does.'),
      }),
      '`deny`: tools of which it holds are hidden; `require`: all others are. Needs `trusted: true`.',
    ),
  }),
  'Which tools hosts see, by the names that the server gives them.',
)

export const nameFilter = (description: string) =>
  field(
    z.strictObject({
      allow: field(texts, 'Patterns (`*`, `?`) of the names that are shown; all without it.'),
      deny: field(texts, 'Patterns of names that are hidden, whatever allows them.'),
    }),
    description,
  )

export const uriFilter = {
  allow: field(
    texts,
    'Patterns of the URIs and templates that are shown, as the server has them; `*` and `?` end at a `/`, `**` does not.',
  ),
  deny: field(texts, 'Patterns of URIs and templates that are hidden, whatever allows them.'),
}

/** Anything that JSON can say. */
const json = z.unknown().meta({})

const argument = z.strictObject({
  value: field(json, 'Sent with every call; a host cannot choose another.'),
  hide: field(flag, 'Hosts do not see the argument and may not send it.', false),
  default: field(json, 'Sent where a call does not carry the argument.'),
  description: field(text, 'In place of the description in the schema.'),
})

/** The hints that a tool may give of itself. */
export const hints = (description: string) =>
  field(
    z.strictObject({
      readOnlyHint: field(flag, 'It changes nothing.'),
      destructiveHint: field(flag, 'It may destroy something.'),
      idempotentHint: field(flag, 'Twice has the effect of once.'),
      openWorldHint: field(flag, 'It reaches beyond the server.'),
    }),
    description,
  )

export const curatedTool = z.strictObject({
  name: field(exposedName, 'Its name behind the prefix.'),
  title: field(filledText, 'Its title.'),
  description: field(filledText, 'Its description.'),
  annotations: hints('What is said of it in place of, and beside, what the server says.'),
  args: field(z.record(z.string(), argument), 'Its arguments, by name.'),
  timeout: field(duration, 'How long a call may take, in place of `timeouts.total` of the server.'),
  rate: field(rate, 'Calls of it by all callers together; more are refused with `rate_limited`.'),
  result: field(
    z.strictObject({
      max_tokens: count(16, 10_000_000).meta({
        description: 'Estimated tokens (bytes divided by 4) of the text of one result.',
      }),
      overflow: field(
        choice('resource', 'truncate', 'error'),
        'What is more: read behind a link (10 min), lost and told, or the call fails and says why.',
        'resource',
      ),
    }),
    'How long a result may be. The tool then promises no `outputSchema` and is not offered as a task.',
  ),
})
