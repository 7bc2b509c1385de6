/**
 * `node scripts/dashboard.ts [FOLDER]`: builds the dashboard (`src/dashboard`) with Vite into `FOLDER` (default `dist/dashboard`): one
 * page, one script, one style sheet and an icon, with content hashes in their names.
 */
import { join, resolve } from 'node:path'

const ROOT = resolve(import.meta.dirname, '..')

/** What the built script holds of other packages; their licences are passed on with it. */
export const DASHBOARD_PACKAGES = ['preact', '@preact/signals', '@preact/signals-core']

/** Rejects with the reason where it cannot be built. */
export const buildDashboard = async (folder: string): Promise<void> => {
  const { build } = await import('vite')
  await build({
    root: join(ROOT, 'src/dashboard'),
    configFile: false,
    logLevel: 'silent',
    base: '/',
    // Vite takes the folder of the terminal for its own otherwise, and writes its cache there.
    cacheDir: join(ROOT, 'node_modules/.cache/vite'),
    build: {
      outDir: folder,
      emptyOutDir: true,
      target: 'es2023',
      // light-dark() stays as it is written.
      cssTarget: ['chrome123', 'edge123', 'firefox120', 'safari17.5'],
      modulePreload: false,
      // The policy of the page loads files of its own origin.
      assetsInlineLimit: 0,
      reportCompressedSize: false,
    },
  })
}

if (import.meta.main) await buildDashboard(resolve(process.argv[2] ?? join(ROOT, 'dist/dashboard')))
