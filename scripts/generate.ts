/** Writes the files generated from the schema and from tables: schema/v1.json, docs/configuration.md, docs/commands.md, docs/hosts. A test fails when they are stale. */
import { readFile, writeFile } from 'node:fs/promises'
import { configurationJsonSchema } from '../src/config/schema/json-schema.ts'
import { renderCommands } from './command-reference.ts'
import { renderReference } from './configuration-reference.ts'
import { renderHostPages } from './host-pages.ts'
import type { Outcome } from './hosts/run.ts'

const root = new URL('../', import.meta.url)

/** Generated files by their path in the project. */
export const generate = async (): Promise<ReadonlyMap<string, string>> => {
  const schema = configurationJsonSchema()
  const intro = await readFile(new URL('scripts/configuration-intro.md', root), 'utf8')
  return new Map([
    ['schema/v1.json', `${JSON.stringify(schema, undefined, 2)}\n`],
    ['docs/configuration.md', `${intro}\n${renderReference(schema)}\n`],
    ['docs/commands.md', await renderCommands()],
    ...renderHostPages(JSON.parse(await readFile(new URL('docs/hosts/runs.json', root), 'utf8')) as Outcome[]),
  ])
}

if (import.meta.main) {
  for (const [path, text] of await generate()) await writeFile(new URL(path, root), text)
}
