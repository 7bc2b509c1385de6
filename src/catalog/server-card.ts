/** A server, as a page for people shows it. */
export interface ServerCard {
  readonly key: string
  readonly displayName: string
  readonly state: 'ready' | 'starting' | 'away'
  readonly needsSignIn: boolean
  readonly tools: number
}
