/** What the random server does at each exchange, and what it saw: shared by the side that asks and the side that answers. */
import type { Exchange, Question, QuestionKind } from './conversation.ts'
import { PLAIN, write } from './json.ts'
import type { Written } from './json.ts'
import type { Asked, ServerQuestion } from './model.ts'

/** One exchange under way. */
export interface Script {
  readonly exchange: Exchange
  /** `turn 7`: stands in everything the server writes for it, so that what goes to another host is seen. */
  readonly mark: string
  /** The server's own name or URI. */
  readonly target: string
  readonly received: { readonly text: string; readonly declared: string }[]
  answered: string | undefined
  readonly questions: ServerQuestion[]
  readonly asked: Asked[]
  cancelled: string | undefined
  /** Called at whatever happens to it. */
  notify: () => void
}

/** The member of `params` that tells two exchanges with one target apart. */
export const TAG = 'x-turn'

export const METHOD_OF: Readonly<Record<QuestionKind, 'elicitation/create' | 'sampling/createMessage' | 'roots/list'>> = {
  form: 'elicitation/create',
  titled: 'elicitation/create',
  several: 'elicitation/create',
  url: 'elicitation/create',
  sampling: 'sampling/createMessage',
  tools: 'sampling/createMessage',
  context: 'sampling/createMessage',
  roots: 'roots/list',
}

const FORM = '{"type":"object","properties":{"n":{"type":"number","minimum":1.0}}}'
const TITLED =
  '{"type":"object","properties":{"choice":{"type":"string","x":1.0,"oneOf":[{"const":"\\u0061","title":"A \\/"},{"const":"b","title":"B"}]}}}'
const SEVERAL = '{"type":"object","properties":{"choice":{"type":"array","items":{"type":"string","enum":["a","b"]}}}}'

/** `params` of a question; its message carries the mark. */
export const questionText = ({ kind, message, more }: Question, mark: string, hasIds: boolean): string => {
  const marked = `${message.slice(0, -1)} ${mark}"`
  const rest = more.filter(([key]) => !['message', 'mode', 'url'].includes(JSON.parse(key) as string))
  const dialog = (schema: string): string => write([['"message"', marked], ['"requestedSchema"', schema], ...rest], PLAIN)
  const prompt = (extra: Written): string =>
    write(
      [['"messages"', `[{"role":"user","content":{"type":"text","text":${marked}}}]`], ['"maxTokens"', '1e1'], ...extra, ...rest],
      PLAIN,
    )
  if (kind === 'roots') return `{"_meta":{"com.example/turn":"${mark}"}}`
  if (kind === 'sampling') return prompt([])
  if (kind === 'context') return prompt([['"includeContext"', '"thisServer"']])
  if (kind === 'tools') return prompt([['"tools"', '[{"name":"one","inputSchema":{"type":"object","x":1.0}}]']])
  if (kind === 'url')
    return write(
      [
        ['"mode"', '"url"'],
        ['"message"', marked],
        ['"url"', '"https:\\/\\/example.com/visit?a=%20b"'],
        ...(hasIds ? ([['"elicitationId"', `"id of ${mark}"`]] as const) : []),
        ...rest,
      ],
      PLAIN,
    )
  return dialog(kind === 'titled' ? TITLED : kind === 'several' ? SEVERAL : FORM)
}

/** What the host answers a question with. */
export const answerText = ({ kind, action, answer }: Question): string => {
  const own = ['action', 'content', 'role', 'model']
  const rest = answer.filter(([key]) => !own.includes(JSON.parse(key) as string))
  if (METHOD_OF[kind] === 'elicitation/create')
    return write(
      [
        ['"action"', JSON.stringify(action)],
        ...(action === 'accept' && kind !== 'url' ? ([['"content"', '{"n":1.0,"caf\\u00e9":"\\u0041"}']] as const) : []),
        ...rest,
      ],
      PLAIN,
    )
  return write([['"role"', '"assistant"'], ['"model"', '"m"'], ['"content"', '{"type":"text","text":"\\u0041"}'], ...rest], PLAIN)
}
