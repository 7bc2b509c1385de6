/**
 * The difference between the two sides of a message, member by member and byte by byte: another spelling of a value is a change, another
 * order of members is not. Each change names the rule that explains it (`change-rules.ts`).
 */
import { elementsAt, membersAt } from '../../wire/message/members.ts'
import { ScanError } from '../../wire/json/scan-error.ts'
import type { Span } from '../../wire/json/scan.ts'
import { OPEN_BRACE, OPEN_BRACKET } from '../../wire/json/tokens.ts'
import { ruleFor } from './change-rules.ts'
import type { Direction } from './change-rules.ts'

export interface Change {
  /** Keys and indexes from the root of the message. */
  readonly path: readonly (string | number)[]
  readonly change: 'added' | 'removed' | 'replaced'
  /** JSON text as received, and as sent. */
  readonly from: string | null
  readonly to: string | null
  /** Byte positions in the two messages. */
  readonly fromAt: readonly [start: number, end: number] | null
  readonly toAt: readonly [start: number, end: number] | null
  /** Id or section of the rule; empty: unknown. */
  readonly rule: string
  readonly why: string
}

const MAX_CHANGES = 200
const MAX_LEVELS = 24

/** Compares a message as received (`from`) and as sent (`to`). Returns no changes if one is not JSON. */
export const diffMessages = (from: string, to: string, direction: Direction): readonly Change[] => {
  const walk = new Walk(Buffer.from(from), Buffer.from(to), direction)
  try {
    walk.value(whole(walk.from), whole(walk.to), [])
  } catch (error) {
    if (!(error instanceof ScanError)) throw error
  }
  return walk.changes
}

const whole = (bytes: Buffer): Span => ({ start: bytes.indexOf(OPEN_BRACE), end: bytes.length })

class Walk {
  readonly from: Buffer
  readonly to: Buffer
  readonly changes: Change[] = []
  readonly #direction: Direction

  constructor(from: Buffer, to: Buffer, direction: Direction) {
    this.from = from
    this.to = to
    this.#direction = direction
  }

  value(from: Span, to: Span, path: readonly (string | number)[]): void {
    if (this.changes.length >= MAX_CHANGES) return
    if (this.from.subarray(from.start, from.end).equals(this.to.subarray(to.start, to.end))) return
    const kind = this.from[from.start]
    const isAlike = kind === this.to[to.start] && path.length < MAX_LEVELS
    if (isAlike && kind === OPEN_BRACE) this.#object(from, to, path)
    else if (isAlike && kind === OPEN_BRACKET) this.#array(from, to, path)
    else this.#add('replaced', path, from, to)
  }

  #object(from: Span, to: Span, path: readonly (string | number)[]): void {
    const before = new Map(membersAt(this.from, from.start).map((member) => [member.key, member]))
    const after = new Map(membersAt(this.to, to.start).map((member) => [member.key, member]))
    for (const [key, member] of before) {
      const other = after.get(key)
      if (other === undefined) this.#add('removed', [...path, key], member, undefined)
      else this.value(member, other, [...path, key])
    }
    for (const [key, member] of after) if (!before.has(key)) this.#add('added', [...path, key], undefined, member)
  }

  #array(from: Span, to: Span, path: readonly (string | number)[]): void {
    const before = elementsAt(this.from, from.start)
    const after = elementsAt(this.to, to.start)
    for (let at = 0; at < Math.max(before.length, after.length); at++) {
      const [a, b] = [before[at], after[at]]
      if (a !== undefined && b !== undefined) this.value(a, b, [...path, at])
      else this.#add(a === undefined ? 'added' : 'removed', [...path, at], a, b)
    }
  }

  #add(change: Change['change'], path: readonly (string | number)[], from: Span | undefined, to: Span | undefined): void {
    if (this.changes.length >= MAX_CHANGES) return
    const { rule, why } = ruleFor(this.#direction, path)
    this.changes.push({
      path,
      change,
      from: from === undefined ? null : this.from.toString('utf8', from.start, from.end),
      to: to === undefined ? null : this.to.toString('utf8', to.start, to.end),
      fromAt: from === undefined ? null : [from.start, from.end],
      toAt: to === undefined ? null : [to.start, to.end],
      rule,
      why,
    })
  }
}
