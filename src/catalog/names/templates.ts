/**
 * Matches URIs against URI templates ([RFC 6570]), to find the owner of a URI without a prefix. The match is generous, since the server
 * decides in the end. Not a regular expression: each piece of the template takes one pass over the URI.
 */

interface Expression {
  /** First character of a non-empty expansion. */
  readonly first: string
  /** Characters that the expansion cannot contain after `first`. */
  readonly stops: string
}

type Piece = string | Expression

export interface UriTemplate {
  readonly pieces: readonly Piece[]
}

const OPERATORS: ReadonlyMap<string, Expression> = new Map([
  ['+', { first: '', stops: '' }],
  ['#', { first: '#', stops: '' }],
  ['.', { first: '.', stops: '/?#' }],
  ['/', { first: '/', stops: '?#' }],
  [';', { first: ';', stops: '/?#' }],
  ['?', { first: '?', stops: '#' }],
  ['&', { first: '&', stops: '#' }],
])
const SIMPLE: Expression = { first: '', stops: '/?#' }

/** Longer templates match nothing, which bounds the work to pieces × characters. */
const MAX_PIECES = 64
const MAX_URI_LENGTH = 4096
/** A scheme and a character after its colon: otherwise `{+any}` of one server would match the URIs of all servers. */
const SPELLED_SCHEME = /^[A-Za-z][A-Za-z0-9+.-]*:[^]/

/** A template that may own URIs without a prefix; `undefined`: it must not, or it is malformed. */
export const parseTemplate = (text: string): UriTemplate | undefined => {
  const pieces: Piece[] = []
  for (let at = 0; at < text.length;) {
    const open = text.indexOf('{', at)
    if (open !== at) pieces.push(text.slice(at, open === -1 ? undefined : open))
    if (open === -1) break
    const close = text.indexOf('}', open)
    if (close === -1) return undefined
    pieces.push(OPERATORS.get(text.charAt(open + 1)) ?? SIMPLE)
    at = close + 1
  }
  const [head] = pieces
  return typeof head === 'string' && SPELLED_SCHEME.test(head) && pieces.length <= MAX_PIECES ? { pieces } : undefined
}

/** Whether some expansion of the template is this URI. */
export const matchesTemplate = (template: UriTemplate, uri: string): boolean => {
  const [head] = template.pieces
  if (uri.length > MAX_URI_LENGTH || typeof head !== 'string' || !uri.startsWith(head)) return false
  let reached = new Uint8Array(uri.length + 1)
  reached[0] = 1
  for (const piece of template.pieces)
    reached = typeof piece === 'string' ? overLiteral(uri, reached, piece) : overExpression(uri, reached, piece)
  return reached[uri.length] === 1
}

type Positions = Uint8Array<ArrayBuffer>

const overLiteral = (uri: string, reached: Positions, literal: string): Positions => {
  const next = new Uint8Array(reached.length)
  for (let at = uri.indexOf(literal); at !== -1; at = uri.indexOf(literal, at + 1)) next[at + literal.length] = reached[at] ?? 0
  return next
}

const overExpression = (uri: string, reached: Positions, { first, stops }: Expression): Positions => {
  const next = Uint8Array.from(reached)
  let isInside = false
  for (let at = 0; at < uri.length; at++) {
    const character = uri.charAt(at)
    // Inside: the expansion contains the character before `at`, so it may continue with the one at `at`.
    const mayGoOn: boolean = isInside && !stops.includes(character)
    const mayBegin = reached[at] === 1 && (first === '' ? !stops.includes(character) : character === first)
    isInside = mayGoOn || mayBegin
    if (isInside) next[at + 1] = 1
  }
  return next
}
