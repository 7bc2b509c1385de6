/** A server as shown on pages for people. */
export interface ServerCard {
  readonly key: string
  readonly displayName: string
  readonly state: 'ready' | 'starting' | 'away'
  readonly needsSignIn: boolean
  readonly tools: number
}
