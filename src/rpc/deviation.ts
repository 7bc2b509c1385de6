/** One way in which a call can differ on its two sides. */

/** `projected`: it arrived in another form. `impossible`: the other side has no form for it, and got an error or nothing. */
type Verdict = 'projected' | 'impossible'

/** `rule`: an id or a section of BRIDGING. */
export interface Deviation {
  readonly feature: string
  readonly rule: string
  readonly verdict: Verdict
  readonly reason: string
}
