/**
 * JSON with comments and tabs as a YAML flow parser accepts it: comments and tabs outside of strings become spaces, so that every line
 * and column stays the same. The flow parser accepts trailing commas itself.
 */
export const blankComments = (text: string): string => {
  const token = /"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*'|\/\/[^\n\r]*|\/\*[^]*?(?:\*\/|$)|\t/g
  return text.replace(token, (found) => (/^["']/.test(found) ? found : found.replace(/[^\n\r]/g, ' ')))
}
