/** What a server asks in the middle of a call: who may be asked what, in which words, and the answer as it was given. */
import type { QuestionKind } from './conversation.ts'
import { areAlone, isBefore, same, sameMembers } from './model.ts'
import type { Asked, Cell, Observed, Say, ServerQuestion } from './model.ts'
import { member, readTree, valueOf } from './tree.ts'
import type { Tree } from './tree.ts'

/** Of client capabilities, as a host of this revision can declare them (2.1; [2025-11-25 changelog], [2025-06-18 changelog]). */
export const declarable = (revision: string, capabilities: string): string => {
  const { elicitation, sampling, roots } = JSON.parse(capabilities) as Record<string, unknown>
  const knowsModes = revision >= '2025-11-25'
  return JSON.stringify({
    ...(elicitation !== undefined && revision >= '2025-06-18' && { elicitation: knowsModes ? elicitation : {} }),
    ...(sampling !== undefined && { sampling: knowsModes ? sampling : {} }),
    ...(roots !== undefined && { roots }),
  })
}

/** What becomes of a question: it is put to the host, or the server is refused with that code (B038, B059, B093, B094, B097). */
export const fateOf = (
  cell: Pick<Cell, 'endpoint' | 'hostEra' | 'hostRevision' | 'serverEra'>,
  capabilities: string,
  kind: QuestionKind,
): 'asked' | -32601 | -32602 => {
  // 3.21: what a host that did not declare it makes of the question is between the two; a modern server must not ask it.
  if (areAlone(cell as Cell) && cell.hostEra === 'legacy') return 'asked'
  const { elicitation, sampling, roots } = JSON.parse(capabilities) as Record<string, Record<string, unknown> | undefined>
  if (kind === 'roots') return roots === undefined ? -32601 : 'asked'
  if (kind === 'sampling' || kind === 'tools' || kind === 'context') {
    if (sampling === undefined) return -32601
    return kind === 'tools' && sampling['tools'] === undefined ? -32602 : 'asked'
  }
  if (elicitation === undefined) return -32601
  if (kind === 'url') return elicitation['url'] === undefined ? -32602 : 'asked'
  // A 2025-06-18 form has no choice of several.
  return kind === 'several' && cell.hostEra === 'legacy' && cell.hostRevision < '2025-11-25' ? -32602 : 'asked'
}

export const judgeQuestions = (cell: Cell, observed: Observed, say: Say): void => {
  const { questions, asked, capabilities } = observed
  const left = [...asked]
  for (const { question, params, answer } of questions) {
    const fate = fateOf(cell, capabilities, question.kind)
    if (fate !== 'asked') judgeRefusal(cell, question.kind, fate, answer, say)
    else if (question.kind === 'roots') judgeRoots(observed, answer, say)
    else {
      const at = left.findIndex((each) => isThat(question.kind, params, each))
      const [reached] = at === -1 ? [] : left.splice(at, 1)
      if (reached === undefined) say(`the host was never asked ${params}; the server was answered ${answer}`)
      else judgeQuestion(cell, { question, params, answer }, reached, say)
    }
  }
  // Roots may be asked once and be known from then on (3.15).
  for (const { params, answer } of left) if (answer !== observed.roots) say(`the host was asked what nobody asks: ${params}`)
}

/** Two questions of one exchange differ in kind, and their messages in their marks. */
const isThat = (kind: QuestionKind, params: string, reached: Asked): boolean => {
  const isSampling = (tree: Tree): boolean => member(tree, 'messages') !== undefined
  const from = readTree(params)
  const to = readTree(reached.params)
  if (isSampling(from) !== isSampling(to)) return false
  if (isSampling(from)) return member(from, 'messages')?.text === member(to, 'messages')?.text
  return (
    String(valueOf(member(to, 'message'))).endsWith(String(valueOf(member(from, 'message')))) &&
    (kind === 'url') === (valueOf(member(to, 'mode')) === 'url')
  )
}

/** A legacy server is told by an error; inside `input_required` there is no form for one, and a dialog is cancelled (3.13 B3). */
const judgeRefusal = (cell: Cell, kind: QuestionKind, code: number, answer: string, say: Say): void => {
  const tree = readTree(answer)
  if (cell.serverEra === 'legacy' && valueOf(member(tree, 'code')) !== code)
    say(`the question "${kind}" was answered with ${answer}`)
  if (cell.serverEra === 'modern' && valueOf(member(tree, 'action')) !== 'cancel')
    say(`the question "${kind}" was answered with ${answer}`)
}

/** B048, B051: the roots of this very host. */
const judgeRoots = ({ roots }: Observed, answer: string, say: Say): void => {
  if (answer !== roots) say(`the roots ${roots} reached the server as ${answer}`)
}

const judgeQuestion = (cell: Cell, { question: { kind }, params, answer }: ServerQuestion, reached: Asked, say: Say): void => {
  const from = readTree(params)
  const to = readTree(reached.params)
  const isDialog = ['form', 'titled', 'several', 'url'].includes(kind)
  if (areAlone(cell)) {
    sameMembers('question', from, to, [], say)
    if (readTree(reached.answer).text !== answer) say(`the answer ${reached.answer} reached the server as ${answer}`)
    return
  }
  const worded = [
    ...(isDialog ? ['message', 'mode', 'elicitationId'] : cell.endpoint === 'merged' ? ['includeContext'] : []),
    ...(kind === 'titled' && isBefore(cell, '2025-11-25') ? ['requestedSchema'] : []),
  ]
  sameMembers('question', from, to, worded, say)
  if (isDialog) judgeDialog(cell, kind, from, to, say)
  // B095: "this server" would be all of them.
  else if (
    cell.endpoint === 'merged' &&
    member(to, 'includeContext') !== undefined &&
    valueOf(member(to, 'includeContext')) !== 'none'
  )
    say(`the host was asked for the context of ${member(to, 'includeContext')?.text}`)
  // B092: answers pass unchanged.
  if (readTree(reached.answer).text !== answer) say(`the answer ${reached.answer} reached the server as ${answer}`)
}

const judgeDialog = (cell: Cell, kind: QuestionKind, from: Tree, to: Tree, say: Say): void => {
  // B090, B261: the label is the display name of the configuration.
  const label = cell.prefix === '' ? '' : `[${cell.prefix.toUpperCase()}] `
  const expected = `${label}${String(valueOf(member(from, 'message')))}`
  if (valueOf(member(to, 'message')) !== expected) say(`a question reached the host as ${member(to, 'message')?.text}`)
  const knowsModes = !isBefore(cell, '2025-11-25')
  const mode = valueOf(member(to, 'mode'))
  if (mode !== undefined && (!knowsModes || mode !== (kind === 'url' ? 'url' : 'form')))
    say(`the mode is ${JSON.stringify(mode)}`)
  // B087: minted for 2025-11-25, unknown to 2026-07-28.
  const id = member(to, 'elicitationId')
  const original = member(from, 'elicitationId')
  if (kind !== 'url' || cell.hostEra === 'modern') {
    if (id !== undefined) say(`a question has the elicitationId ${id.text}`)
  } else if (id === undefined || id.text === original?.text) say(`a question has the elicitationId ${id?.text}`)
  if (kind === 'titled' && !knowsModes) judgeTitles(member(from, 'requestedSchema'), member(to, 'requestedSchema'), say)
}

/** B094: `oneOf` of titled constants as `enum` and `enumNames`; all else of the form as it was. */
const judgeTitles = (from: Tree | undefined, to: Tree | undefined, say: Say): void => {
  sameMembers('form', from, to, ['properties'], say)
  const field = (form: Tree | undefined): Tree | undefined => member(member(form, 'properties'), 'choice')
  sameMembers('field', field(from), field(to), ['oneOf', 'enum', 'enumNames'], say)
  const options = member(field(from), 'oneOf')?.items ?? []
  const list = (name: string): Tree[] => [...(member(field(to), name)?.items ?? [])]
  if (list('enum').length !== options.length) say(`${options.length} choices became ${field(to)?.text}`)
  options.forEach((option, at) => {
    same('enum', member(option, 'const') ?? option, list('enum')[at], say)
    same('enumNames', member(option, 'title') ?? option, list('enumNames')[at], say)
  })
}
