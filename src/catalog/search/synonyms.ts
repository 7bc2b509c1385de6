/**
 * Synonyms in questions about tools: people ask to "remove a row" where a definition says "delete a record". Only words that apply to
 * many kinds of tools are listed, so the table does not grow with the number of servers.
 */
import { lazily } from '../../values/lazily.ts'
import { wordsOf } from './search-words.ts'

const GROUPS: readonly string[] = [
  // Actions.
  'add create make new insert write compose',
  'remove delete erase drop destroy uninstall discard clear forget wipe purge trash',
  'change update edit modify alter patch replace set adjust',
  'get read show fetch retrieve view see display open',
  'describe details inspect information info metadata explain mean meaning profile',
  'list all every show enumerate which overview',
  'find search look lookup query locate discover',
  'run execute start launch trigger begin play',
  'stop cancel end abort kill terminate',
  'retry rerun restart redo',
  'undo revert rollback restore',
  'unlink detach disconnect',
  'copy duplicate clone fork',
  'rename move relocate transfer',
  'go navigate visit browse open',
  'drag drop',
  'send post submit publish',
  'reply answer respond',
  'save store write',
  'download export save',
  'upload attach attachment import',
  'convert transform parse',
  'extract scrape crawl',
  'fix repair correct resolve',
  'compare diff difference',
  'merge combine join',
  'schedule recurring nightly daily weekly',
  'watch monitor track observe notify',
  'wait until',
  'link associate connect relate relation association',
  'record capture screencast video',
  'count number amount',
  'choose pick select option',
  'click press tap',
  'type enter fill input',
  'enable activate',
  'disable deactivate pause suspend',
  'approve accept vote',
  'reject decline',
  'check verify validate test',
  'deploy deployment release rollout',
  'protect lock',
  'remember memory knowledge',
  'bulk batch multiple many',
  // Objects.
  'picture image photo screenshot',
  'tab page browser',
  'mail email',
  'message chat',
  'comment note remark',
  'discussion conversation thread',
  'issue bug ticket defect',
  'meeting event appointment calendar',
  'free busy available availability',
  'row record',
  'column field property attribute',
  'folder directory',
  'document file',
  'documentation docs manual',
  'table spreadsheet sheet',
  'website site web url link',
  'article paper',
  'error failure exception fail crash',
  'log output trace console',
  'person people user member colleague contact account',
  'group team',
  'organization workspace org',
  'commit revision',
  'sprint iteration',
  'repository repo',
  'database db',
  'structure schema',
  'environment env',
  'configuration config setting',
  'authentication auth login',
  'permission access',
  'secret credential token',
  'javascript js',
  'http network',
  'kubernetes k8s cluster',
  'pod container',
  'postgres postgresql sql',
  'machine server instance node host worker',
  'cost price pay billing usage',
  'size big large small',
  'performance speed slow fast',
  'vulnerability security',
  'dialog popup alert modal',
  'accessibility a11y',
  'dark theme color colour',
  'location coordinates place position',
  'restaurant shop business place',
  'distance far',
  'direction route way drive',
  'height elevation altitude',
  'time date',
  'reaction emoji thumb',
  'label tag',
  'mobile phone device',
]
/** Abbreviations and verbs of several words in questions, with their meaning. */
const PHRASES: readonly (readonly [phrase: string, meant: string])[] = [
  ['pr', 'pull request'],
  ['prs', 'pull requests'],
  ['mr', 'merge request'],
  ['mrs', 'merge requests'],
  ['ci', 'pipeline build'],
  ['ticket', 'work item'],
  ['how many', 'count'],
  ['how big', 'size'],
  ['how far', 'distance'],
  ['how long', 'duration'],
  ['who am i', 'whoami'],
  ['sign in', 'login'],
  ['log in', 'login'],
  ['turn off', 'disable'],
  ['turn on', 'enable'],
  ['shut down', 'stop'],
  ['set up', 'create'],
  ['spin up', 'create'],
  ['throw away', 'delete'],
  ['get rid of', 'delete'],
  ['roll back', 'rollback'],
]

/** Marks of the groups a word is in; a mark is no word, so that nothing else begins or reads like it. */
const marksByWord = lazily((): ReadonlyMap<string, readonly string[]> => {
  const marks = new Map<string, string[]>()
  for (const [at, group] of GROUPS.entries())
    for (const word of new Set(wordsOf(group))) marks.set(word, [...(marks.get(word) ?? []), `=${at}`])
  return marks
})

export const isMark = (term: string): boolean => term.startsWith('=')

/** The words of a text with repetitions, and once the mark of each group they belong to. */
export const termsOf = (text: string, read: (text: string) => string[] = wordsOf): string[] => {
  const words = read(text)
  const marks = marksByWord()
  return [...words, ...new Set(words.flatMap((word) => marks.get(word) ?? []))]
}

/** The terms of a question, each once, with the meanings of its phrases. */
export const questionTermsOf = (question: string): string[] => {
  const plain = ` ${question.toLowerCase().replaceAll(/[^\p{L}\p{M}\p{N}]+/gu, ' ')} `
  const meant = PHRASES.flatMap(([phrase, words]) => (plain.includes(` ${phrase} `) ? [words] : []))
  return [...new Set(termsOf([question, ...meant].join(' ')))]
}
