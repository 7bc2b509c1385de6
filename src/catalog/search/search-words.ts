/**
 * Splits text into search words: `createIssueComment`, `create_issue_comment` and "creates comments on issues" yield the same words.
 * English endings are removed by rules, without a dictionary: a wrong stem is harmless if question and definition get the same one.
 */

/** Words that are frequent in questions and do not distinguish tools. */
const NOISE: ReadonlySet<string> = new Set(
  (
    'a about also am an and any are as at be been but by can could did do does for from had has have how i if in into is it its ' +
    'know let like me my need needs of on or our out please several should so some such than that the their them then there these ' +
    'they this those to too us use used uses using via want was we were what when where which while who whose will with would you your'
  ).split(' '),
)
/** Longest name of several words that people also write as one: GitHub, PostgreSQL, DevTools. */
const MAX_JOINED = 12
/** Longer words are cut: no person searches for them, and a definition may contain any text. */
const MAX_WORD = 40

const RUN = /[\p{L}\p{M}\p{N}]+/gu
/** Plural acronyms, acronyms, words, scripts without case, numbers. */
const PART = /\p{Lu}{2,}s(?!\p{Ll})|\p{Lu}+(?!\p{Ll})|\p{Lu}?[\p{Ll}\p{M}]+|[\p{Lo}\p{Lm}\p{Lt}\p{M}]+|\p{N}+/gu

/** Scripts without blanks between words, and Korean, whose words have endings. */
const UNSPACED =
  /[\p{sc=Han}\p{sc=Hira}\p{sc=Kana}\p{sc=Hang}\p{sc=Bopo}\p{sc=Yi}\p{sc=Thai}\p{sc=Lao}\p{sc=Khmr}\p{sc=Mymr}\p{sc=Tibt}]/u

const PLURAL_ACRONYM = /^(\p{Lu}+)s$/u

/** The words of a text in order: split at punctuation and changes of case, in lower case, without noise words and endings. */
export const wordsOf = (text: string): string[] => reader()(text)

/** `wordsOf` for many texts with the same words: caches words that were split. */
export const reader = (): ((text: string) => string[]) => {
  const known = new Map<string, readonly string[]>()
  return (text) => {
    const words: string[] = []
    // Equal letters have one spelling: composed, of normal width.
    for (const run of text.normalize('NFKC').match(RUN) ?? []) {
      let split = known.get(run)
      if (split === undefined) known.set(run, (split = splitRun(run)))
      words.push(...split)
    }
    return words
  }
}

/** The words of a run of letters and digits. */
const splitRun = (run: string): readonly string[] => {
  const parts = run.match(PART) ?? []
  const whole = parts.length > 1 && run.length <= MAX_JOINED ? [run] : []
  return [...parts.flatMap(pairsOf).map((part) => part.replace(PLURAL_ACRONYM, '$1')), ...whole]
    .map((word) => word.slice(0, MAX_WORD).toLowerCase())
    .filter((word) => !NOISE.has(word))
    .map(stemOf)
}

/** Every two neighbouring characters of a text without blanks between words, in place of words; another word itself. */
const pairsOf = (part: string): readonly string[] => {
  const characters = UNSPACED.test(part) ? Array.from(part) : []
  return characters.length < 3 ? [part] : characters.slice(1).map((character, at) => `${characters[at]}${character}`)
}

/** A lower-case word without its English ending; words of other alphabets and short ones stay. */
const stemOf = (word: string): string =>
  word.length < 4 || !/^[a-z]+$/.test(word) ? word : withoutE(withoutNoun(withoutVerb(withoutPlural(word))))

const withoutPlural = (word: string): string => {
  if (word.endsWith('ies') && word.length > 4) return `${word.slice(0, -3)}y`
  if (/(?:ss|sh|ch|x|z)es$/.test(word)) return word.slice(0, -2)
  return /[^suia]s$/.test(word) ? word.slice(0, -1) : word
}

const withoutVerb = (word: string): string => {
  const ending = ['ing', 'ed'].find((one) => word.endsWith(one))
  const stem = ending && word.slice(0, -ending.length)
  if (stem === undefined || stem.length < 3 || !/[aeiouy]/.test(stem)) return word
  return /([^aeioulsz])\1$/.test(stem) ? stem.slice(0, -1) : stem
}

const withoutNoun = (word: string): string => {
  if (/.{3}[st]ion$/.test(word)) return word.slice(0, -3)
  return /.{5}ment$/.test(word) ? word.slice(0, -4) : word
}

const withoutE = (word: string): string => (word.length > 3 && word.endsWith('e') ? word.slice(0, -1) : word)
