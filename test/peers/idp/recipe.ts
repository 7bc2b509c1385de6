/** The pages of docs/identity as they stand: their blocks, and what Trunkline makes of the file that they show. */
import { readFile } from 'node:fs/promises'
import type { Configuration } from '../../../src/config/options.ts'
import { workspace } from '../../unit/config/workspace.ts'
import { SECRET } from './provider.ts'
import type { ProviderKind } from './provider.ts'

/** A block of a page in this language, the first by default. */
export const blockOf = async (name: ProviderKind['name'], language: 'yaml' | 'text', at = 0): Promise<string> => {
  const page = await readFile(new URL(`../../../docs/identity/${name}.md`, import.meta.url), 'utf8')
  const block = [...page.matchAll(new RegExp('```' + language + '\\n([^]*?)\\n```', 'g'))][at]?.[1]
  if (block === undefined) throw new Error(`docs/identity/${name}.md has no block ${at + 1} of ${language}`)
  return block
}

/** What a page shows: which of its files, and what a reader changes there. */
export interface Recipe {
  readonly block?: number
  /** By lines of the text. */
  readonly edit?: readonly (readonly [from: string, to: string])[]
}

/** The configuration of a page for a gateway and a provider at these origins. Throws where a line that is to be changed is not there. */
export const recipeOf = async (
  name: ProviderKind['name'],
  origins: { readonly gateway: string; readonly provider: string },
  { block, edit = [] }: Recipe = {},
): Promise<Configuration> => {
  let text = await blockOf(name, 'yaml', block)
  for (const [from, to] of edit) {
    if (!text.includes(from)) throw new Error(`docs/identity/${name}.md does not have: ${from}`)
    text = text.replace(from, to)
  }
  const at = text
    .replaceAll('https://mcp.example.com', origins.gateway)
    .replaceAll(`https://${name}.example.com`, origins.provider)
  await using files = await workspace({ 'trunkline.yaml': `${at}\n` })
  return await files.load(undefined, { env: { TRUNKLINE_SECRET: SECRET } })
}
