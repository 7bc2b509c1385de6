/**
 * `node scripts/packaging.ts FOLDER`: fills the templates of packaging/ for a release, from the archives in FOLDER: the Homebrew formula,
 * the Scoop manifest and the bundle's manifest. Fails where an archive is missing, or `server.json` has another version than the package.
 */
import { createHash } from 'node:crypto'
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { basename, dirname, join, resolve } from 'node:path'

const ROOT = dirname(import.meta.dirname)
const TEMPLATES = ['packaging/homebrew/trunkline.rb', 'packaging/scoop/trunkline.json', 'packaging/mcpb/manifest.json']

/** The texts of the templates by file name. `digestOf`: SHA-256 of the archive of a platform, such as `linux-x64`. Throws for what does not agree. */
export const fillTemplates = (digestOf: (platform: string) => string): ReadonlyMap<string, string> => {
  const json = (file: string) => JSON.parse(readFileSync(join(ROOT, file), 'utf8')) as Record<string, unknown>
  const version = String(json('package.json')['version'])
  const { version: registered, packages } = json('server.json') as { version: string; packages: { version: string }[] }
  if ([registered, ...packages.map((one) => one.version)].some((one) => one !== version))
    throw new Error(`server.json has another version than package.json (${version}); write it there`)
  const release = `https://github.com/trunkline/trunkline/releases/download/v${version}`
  const filled = (text: string): string =>
    text
      .replaceAll('@VERSION@', version)
      .replaceAll('@RELEASE@', release)
      .replaceAll(/@SHA256:([\w-]+)@/g, (_, platform: string) => digestOf(platform))
  return new Map(TEMPLATES.map((file) => [basename(file), filled(readFileSync(join(ROOT, file), 'utf8'))]))
}

if (import.meta.main) {
  const folder = resolve(process.argv[2] ?? 'release')
  const digestOf = (platform: string): string => {
    const file = ['tar.gz', 'zip'].map((end) => join(folder, `trunkline-${platform}.${end}`)).find(existsSync)
    if (file === undefined) throw new Error(`there is no archive of ${platform} in ${folder}`)
    return createHash('sha256').update(readFileSync(file)).digest('hex')
  }
  mkdirSync(folder, { recursive: true })
  for (const [name, text] of fillTemplates(digestOf)) writeFileSync(join(folder, name), text)
}
