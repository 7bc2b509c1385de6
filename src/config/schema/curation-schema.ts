/** Curation of what a server offers: filters, and changes to single tools. */
import { z } from 'zod'
import { choice, count, duration, exposedName, field, filledText, flag, rate, text, texts } from './kinds.ts'

const hint = (description: string) => field(choice('deny', 'require'), description)

const nameLists = {
  allow: field(texts, 'Patterns (`*`, `?`) of the names that are shown. Default: all.'),
  deny: field(texts, 'Patterns of names that are hidden, even if `allow` matches them.'),
}

export const toolFilter = field(
  z.strictObject({
    ...nameLists,
    annotations: field(
      z.strictObject({
        read_only: hint('Tools that are annotated as read-only.'),
        destructive: hint('Tools that may be destructive; a tool without the annotation may be.'),
        idempotent: hint('Tools for which a second call has no further effect.'),
        open_world: hint('Tools that reach beyond the server; a tool without the annotation does.'),
      }),
      '`deny`: tools with the property are hidden; `require`: all others are. Needs `trusted: true`.',
    ),
  }),
  'The tools that hosts see, by the names that the server gives them.',
)

export const nameFilter = (description: string) => field(z.strictObject(nameLists), description)

export const uriFilter = {
  allow: field(
    texts,
    'Patterns of the URIs and templates that are shown, as the server has them; `*` and `?` do not match `/`, `**` does.',
  ),
  deny: field(texts, 'Patterns of URIs and templates that are hidden, even if `allow` matches them.'),
}

/** Any JSON value. */
const json = z.unknown().meta({})

const argument = z.strictObject({
  value: field(json, 'Sent with every call; a host cannot change it.'),
  hide: field(flag, 'Hosts do not see the argument and may not send it.', false),
  default: field(json, 'Sent if a call does not have the argument.'),
  description: field(text, 'Replaces the description in the schema.'),
})

/** Annotations of a tool. */
export const hints = (description: string) =>
  field(
    z.strictObject({
      readOnlyHint: field(flag, 'It changes nothing.'),
      destructiveHint: field(flag, 'It may delete or overwrite something.'),
      idempotentHint: field(flag, 'A second call has no further effect.'),
      openWorldHint: field(flag, 'It reaches beyond the server.'),
    }),
    description,
  )

export const curatedTool = z.strictObject({
  name: field(exposedName, 'Its name behind the prefix.'),
  title: field(filledText, 'Its title.'),
  description: field(filledText, 'Its description.'),
  annotations: hints('Annotations that replace or complete those of the server.'),
  args: field(z.record(z.string(), argument), 'Its arguments, by name.'),
  timeout: field(
    duration,
    'How long a call may take, in place of `timeouts.total` of the server. It may be silent for as long if this is more than `timeouts.idle`.',
  ),
  rate: field(rate, 'Calls of all callers together; more are refused with `rate_limited`.'),
  result: field(
    z.strictObject({
      max_tokens: count(16, 10_000_000).meta({
        description: 'Estimated tokens (bytes divided by 4) of the text of one result.',
      }),
      overflow: field(
        choice('resource', 'truncate', 'error'),
        'What happens to a longer result: `resource`: the rest is read by a link (10 min); `truncate`: it is cut, with a notice; `error`: the call fails.',
        'resource',
      ),
    }),
    'Size limit of a result. The tool then has no `outputSchema` and is not offered as a task.',
  ),
})
