/**
 * JSON with comments and tabs, made digestible for a YAML flow parser without moving a character: comments and tabs outside of
 * strings become spaces, so every line and column stays what the person sees. Trailing commas the flow parser takes itself.
 */
export const blankComments = (text: string): string => {
  const token = /"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*'|\/\/[^\n\r]*|\/\*[^]*?(?:\*\/|$)|\t/g
  return text.replace(token, (found) => (/^["']/.test(found) ? found : found.replace(/[^\n\r]/g, ' ')))
}
