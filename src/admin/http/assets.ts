/** The files of the dashboard, as the admin listener serves them without a credential: they hold nothing of the configuration. */

export interface Asset {
  readonly type: string
  readonly body: Buffer
  /** Its name changes with its content, so that a browser may keep it. */
  readonly isImmutable: boolean
}

/** By path: `/`, `/app-3f2a.js`. */
export type Assets = (path: string) => Asset | undefined

/** Served while no dashboard is built in. */
const PLAIN_PAGE = `<!doctype html>
<html lang="en">
<meta charset="utf-8">
<title>Trunkline</title>
<h1>Trunkline</h1>
<p>This build has no dashboard. The API is below <code>/api</code>; see docs/admin-api.md.</p>
</html>
`

export const plainAssets: Assets = (path) =>
  path === '/' ? { type: 'text/html; charset=utf-8', body: Buffer.from(PLAIN_PAGE), isImmutable: false } : undefined
