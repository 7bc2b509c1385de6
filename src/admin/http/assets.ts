/** The files of the dashboard, which the admin listener serves without a credential: they contain nothing of the configuration. */
import { readdirSync, readFileSync } from 'node:fs'
import { extname, join, sep } from 'node:path'
import { attempt } from '../../values/attempt.ts'

export interface Asset {
  readonly type: string
  readonly body: Buffer
  /** Its name changes with its content, so a browser may cache it. */
  readonly isImmutable: boolean
}

/** By path: `/`, `/assets/index-3f2a.js`. */
export type Assets = (path: string) => Asset | undefined

/** First path segments of screens, which the page itself reads (`src/dashboard/page/route.ts`). */
const SCREENS: ReadonlySet<string> = new Set(['traffic', 'calls', 'catalog', 'tools', 'servers', 'toolsets', 'changes', 'health'])

const TYPES: Readonly<Record<string, string>> = {
  '.html': 'text/html; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
  '.svg': 'image/svg+xml',
}

/** Served where the dashboard was not built. */
const PLAIN_PAGE = `<!doctype html>
<html lang="en">
<meta charset="utf-8">
<title>Trunkline</title>
<h1>Trunkline</h1>
<p>The dashboard was not built in this checkout: run <code>npm run build</code>, or start with <code>npm start</code>.
The API is below <code>/api</code>; see docs/admin-api.md.</p>
</html>
`
const PLAIN: Asset = { type: 'text/html; charset=utf-8', body: Buffer.from(PLAIN_PAGE), isImmutable: false }

/** The files of a folder, read at the first request. If the dashboard was not built, a page that says so. */
export const folderAssets = (folder: string): Assets => {
  let files: ReadonlyMap<string, Asset> | undefined
  return (path) => {
    files ??= readFolder(folder)
    const [, first = ''] = path.split('/')
    const isScreen = path === '/' || SCREENS.has(first)
    return files.get(path) ?? (isScreen ? (files.get('/index.html') ?? PLAIN) : undefined)
  }
}

const readFolder = (folder: string): ReadonlyMap<string, Asset> => {
  const files = new Map<string, Asset>()
  for (const name of attempt(() => readdirSync(folder, { recursive: true, encoding: 'utf8' })) ?? []) {
    const type = TYPES[extname(name)]
    if (type === undefined) continue
    const isImmutable = /-[\w-]{8}\.\w+$/.test(name)
    files.set(`/${name.replaceAll(sep, '/')}`, { type, body: readFileSync(join(folder, name)), isImmutable })
  }
  return files
}
