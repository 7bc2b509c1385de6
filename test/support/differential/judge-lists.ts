/** Lists as hosts read them: every definition in the server's bytes and order, but for names, URIs and what was configured. */
import { definitionText, exposedId, LIST_WORDS, shown } from './catalog.ts'
import type { Curating, ListName } from './catalog.ts'
import { isWrappedBy, knowsObjectsOnly } from './judge.ts'
import { areAlone, OURS, same, sameMembers } from './model.ts'
import type { Cell, Say } from './model.ts'
import { member, readTree, valueOf } from './tree.ts'
import type { Tree } from './tree.ts'

/** `pages`: the results that one host got, first to last. `others`: exposed ids of other servers' entries. */
export const judgeList = (
  cell: Cell,
  list: ListName,
  pages: readonly string[],
  pageMaxItems: number,
  others: readonly string[],
  say: Say,
): void => {
  const words = LIST_WORDS[list]
  const results = pages.map((text) => member(readTree(text), 'result'))
  results.forEach((result, at) => {
    if (result === undefined) return say(`${words.method} was answered with ${pages[at]}`)
    if (!areAlone(cell)) judgePage(cell, words.member, result, pageMaxItems, say)
  })
  const all = results.flatMap((result) => member(result, words.member)?.items ?? [])
  const ids = all.map((entry) => valueOf(member(entry, words.id)) as string)
  const entries = all.filter((_, at) => !others.includes(ids[at] ?? ''))
  const expected = shown(cell.catalog, cell.curating, list)
  const exposed = expected.map(({ id }) => exposedId(cell.prefix, cell.curating, list, id))
  const listed = ids.filter((id) => !others.includes(id))
  // B114, B159, B292: this server's, all of them and no others, in its own order.
  if (listed.join('\n') !== exposed.join('\n')) return say(`${list} are ${listed.join(', ')} and not ${exposed.join(', ')}`)
  expected.forEach((definition, at) => {
    const entry = entries[at]
    if (entry !== undefined) judgeEntry(cell, list, definition.id, readTree(definitionText(list, definition)), entry, say)
  })
}

/** B029, B119, B149: what stands beside the entries is ours. */
const judgePage = (cell: Cell, name: string, result: Tree, pageMaxItems: number, say: Say): void => {
  const isModern = cell.hostEra === 'modern'
  const own = [name, 'nextCursor', ...(isModern ? ['resultType', 'ttlMs', 'cacheScope', '_meta'] : [])]
  for (const { key } of result.members) if (!own.includes(key)) say(`a list has the member "${key}"`)
  if (isModern)
    for (const key of ['resultType', 'ttlMs', 'cacheScope']) if (member(result, key) === undefined) say(`a list has no ${key}`)
  if ((member(result, name)?.items.length ?? 0) > pageMaxItems) say(`a page has ${member(result, name)?.items.length} entries`)
  const cursor = valueOf(member(result, 'nextCursor'))
  if (typeof cursor === 'string' && cursor.startsWith('page ')) say(`a cursor of the server reached the host: ${cursor}`)
}

const judgeEntry = (cell: Cell, list: ListName, original: string, from: Tree, to: Tree, say: Say): void => {
  const place = `${list} "${original}"`
  const edit = list === 'tools' ? cell.curating.edits.find(({ tool }) => tool === original) : undefined
  const edited = [
    LIST_WORDS[list].id,
    ...(edit?.title === undefined ? [] : ['title']),
    ...(edit?.description === undefined ? [] : ['description']),
    ...(edit?.readOnlyHint === undefined && edit?.title === undefined ? [] : ['annotations']),
    ...(edit?.pin === undefined ? [] : ['inputSchema']),
    ...(list === 'tools' && knowsObjectsOnly(cell) ? ['outputSchema'] : []),
  ]
  sameMembers(place, from, to, edited, say)
  if (edit !== undefined) judgeEdit(place, edit, from, to, say)
  if (list === 'tools' && knowsObjectsOnly(cell))
    judgeOutputSchema(place, member(from, 'outputSchema'), member(to, 'outputSchema'), say)
  for (const { key } of member(to, '_meta')?.members ?? []) if (key.startsWith(OURS)) say(`${place} has _meta["${key}"]`)
}

/** 2.6: what the operator configured replaces those members, and nothing beside them. */
const judgeEdit = (place: string, edit: Curating['edits'][number], from: Tree, to: Tree, say: Say): void => {
  for (const key of ['title', 'description'] as const)
    if (edit[key] !== undefined && valueOf(member(to, key)) !== edit[key]) say(`${place}.${key} is ${member(to, key)?.text}`)
  if (edit.readOnlyHint !== undefined) {
    if (valueOf(member(member(to, 'annotations'), 'readOnlyHint')) !== edit.readOnlyHint)
      say(`${place}.annotations are ${member(to, 'annotations')?.text}`)
    // A configured title stands in both places.
    const titled = ['readOnlyHint', ...(edit.title === undefined ? [] : ['title'])]
    sameMembers(`${place}.annotations`, member(from, 'annotations'), member(to, 'annotations'), titled, say)
  }
  if (edit.pin === undefined) return
  const [before, after] = [member(from, 'inputSchema'), member(to, 'inputSchema')]
  sameMembers(`${place}.inputSchema`, before, after, ['properties', 'required'], say)
  const [properties, left] = [member(before, 'properties'), member(after, 'properties')]
  sameMembers(`${place}.inputSchema.properties`, properties, left, ['pinned'], say)
  if (member(properties, 'pinned') === undefined) return
  if ((member(left, 'pinned') === undefined) !== edit.pin.isHidden) say(`${place} shows ${left?.text}`)
  const constant = valueOf(member(member(left, 'pinned'), 'const'))
  if (!edit.pin.isHidden && constant !== edit.pin.value) say(`${place} shows ${left?.text}`)
  if (member(after, 'required')?.text.includes('pinned') === true) say(`${place} requires ${member(after, 'required')?.text}`)
}

/** 3.3 (B108): a root that is not literally an object stands under `result`; local references are one level deeper. */
const judgeOutputSchema = (place: string, from: Tree | undefined, to: Tree | undefined, say: Say): void => {
  if (from === undefined) return to === undefined ? undefined : say(`${place}.outputSchema was invented: ${to.text}`)
  if (!isWrappedBy(from, from)) return same(`${place}.outputSchema`, from, to, say)
  const inner = member(member(to, 'properties'), 'result')
  const expected = from.text.replaceAll(/"#(?:\/|\\\/)\$defs(?:\/|\\\/)d"/g, '"#/properties/result/$defs/d"')
  if (inner?.text !== expected) say(`${place}.outputSchema ${from.text} became ${to?.text}`)
  if (valueOf(member(to, 'type')) !== 'object' || member(to, 'required')?.text !== '["result"]')
    say(`${place}.outputSchema is ${to?.text}`)
}
