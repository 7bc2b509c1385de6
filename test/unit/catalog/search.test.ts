import { describe, expect, test } from 'vitest'
import { buildCatalog } from '../../../src/catalog/build-catalog.ts'
import type { CatalogServer } from '../../../src/catalog/catalog.ts'
import type { Entry } from '../../../src/catalog/inventory.ts'
import { ToolSearch } from '../../../src/catalog/search/search.ts'
import { summaryOf, toolText } from '../../../src/catalog/search/tool-text.ts'
import { Views } from '../../../src/catalog/view/view.ts'
import type { ReadyList } from '../../../src/catalog/view/view.ts'
import { ALWAYS, entryOf, serverOf, sourceOf } from './fixtures.ts'

const tool = (name: string, description = '', properties: object = {}, more: object = {}): Entry =>
  entryOf(name, { name, description, inputSchema: { type: 'object', properties }, ...more })

const TRACKER = [
  tool('createIssue', 'Opens an issue in a repository.', { assignee: { type: 'string', description: 'Login of a person' } }),
  tool('close_issue', 'Closes an issue.'),
  tool('list_labels', 'Lists the labels of a repository.', { color: { enum: ['crimson', 'teal'] } }),
]
const SHEETS = [
  tool('delete_records', 'Deletes records of a table.'),
  tool('list_bases', 'Lists all bases.'),
  tool('list_labels', 'Lists the labels of a base.'),
]

const views = new Views()
const listOf = (servers: Readonly<Record<string, readonly Entry[]>>, changes: Partial<CatalogServer> = {}): ReadyList => {
  const sources = Object.entries(servers).map(([key, tools]) => sourceOf(serverOf(key, changes), { tools: [...tools] }))
  return views.of(buildCatalog(sources, ALWAYS), { revision: '2026-07-28' }).list('tools')
}
const LIST = listOf({ tracker: TRACKER, sheets: SHEETS })

const names = (list: ReadyList, question: string, search = new ToolSearch(), limit = 5): string[] =>
  search.find(list, question, limit).map(({ at }) => list.rows[at]!.exposed)

describe('what a question finds', () => {
  test.each([
    ['create_issue', 'tracker__createIssue', 'the name, however it is written'],
    ['who is the assignee', 'tracker__createIssue', 'the name of an argument'],
    ['login', 'tracker__createIssue', 'the description of an argument'],
    ['teal', 'tracker__list_labels', 'a word an argument may be set to'],
    ['remove a row', 'sheets__delete_records', 'words that mean the same'],
    ['labels in sheets', 'sheets__list_labels', 'its server, among tools of one name'],
    ['assig', 'tracker__createIssue', 'the beginning of a word'],
    ['asignee', 'tracker__createIssue', 'a word with a slip of the finger'],
  ])('"%s" finds %s by %s', (question, expected) => {
    expect(names(LIST, question)[0]).toBe(expected)
  })

  test('answers have falling scores, and equally good ones stand in the order of the list', () => {
    const found = new ToolSearch().find(LIST, 'issue', 5)
    expect(found.length).toBeGreaterThan(1)
    expect(found.map(({ score }) => score)).toEqual(found.map(({ score }) => score).toSorted((a, b) => b - a))
    const twins = listOf({ b: [tool('same')], a: [tool('same')] }, { key: 'k', prefix: 'k', displayName: 'k' })
    expect(new ToolSearch().find(twins, 'same', 5).map(({ at }) => at)).toEqual(twins.rows.map((_, at) => at))
  })

  test('a word is the same in every Unicode form: composed, decomposed, or in full width', () => {
    const list = listOf({ a: [tool('x', 'Créer un événement.'), tool('y', 'Liste.'.normalize('NFD'))] })
    expect(names(list, 'événement'.normalize('NFD'))).toEqual(['a__x'])
    expect(names(list, 'ｌｉｓｔｅ')).toEqual(['a__y'])
  })

  test.each([
    ['查询天气', 'a__maps_weather', '根据城市名称查询指定城市的天气'],
    ['请帮我删除一个文件', 'a__fs_remove', '从磁盘中删除文件或目录。不可恢复。'],
    ['ファイルを削除したい', 'a__fs_remove', '指定されたファイルを完全に削除します。'],
    ['이슈 생성', 'a__new_ticket', '저장소에 새로운 이슈를 생성합니다.'],
    ['ส่งข้อความ', 'a__post', 'ใช้สำหรับส่งข้อความไปยังช่อง'],
  ])(
    'a question in a language without blanks between words, or with endings: "%s" finds %s',
    (question, expected, description) => {
      const name = expected.slice('a__'.length)
      const list = listOf({ a: [tool('other', '列出所有项目 一覧 목록 รายการ'), tool(name, description)] })
      expect(names(list, question)).toEqual([expected])
    },
  )

  test('there are never more answers than asked for, and none for words nobody has', () => {
    expect(names(LIST, 'list', new ToolSearch(), 1)).toHaveLength(1)
    expect(names(LIST, 'quux')).toEqual([])
    expect(names(LIST, ' … ')).toEqual([])
  })

  test('of an endless question the beginning is read', () => {
    const question = `delete records ${'issue '.repeat(100_000)}`
    expect(names(LIST, question)).toEqual(names(LIST, question.slice(0, 1_000)))
  })

  test('what curation renames and rewords is found by its new words, not by the old', () => {
    const curated = { ...tool('old_name', 'Ancient.'), raw: Buffer.from('{"name":"x","description":"Weather forecast."}') }
    const list = listOf({ a: [curated], b: [tool('other')] })
    expect(names(list, 'weather')).toEqual(['a__old_name'])
    expect(names(list, 'ancient')).toEqual([])
  })

  test.each([
    ['{"name":"t","description":7,"title":{},"inputSchema":[]}'],
    ['{"name":"t","inputSchema":{"properties":{"a":null,"__proto__":{"enum":[1,null]}},"items":3}}'],
    ['{"name":"t","annotations":null,"inputSchema":{"type":"array","items":[{"properties":{"x":{}}}]}}'],
    [`{"name":"t","inputSchema":${'{"properties":{"a":'.repeat(100)}{}${'}}'.repeat(100)}}`],
  ])('a definition of another shape is found by its name: %.60s', (json) => {
    expect(names(listOf({ a: [entryOf('odd', json)], b: [] }), 'odd')).toEqual(['a__odd'])
  })
})

describe('an index that follows a view', () => {
  test('reads what came and what reads differently, and nothing twice', () => {
    const search = new ToolSearch()
    names(LIST, 'issue', search)
    expect(search.reads).toBe(6)
    const changed = [tool('createIssue', 'Files a complaint.'), TRACKER[1]!, tool('brand_new')]
    const list = listOf({ tracker: changed, sheets: SHEETS })
    expect(names(list, 'complaint', search)).toEqual(['tracker__createIssue'])
    expect(search.reads).toBe(8)
    expect(names(list, 'crimson', search)).toEqual([])
    names(LIST, 'issue', search)
    names(LIST, 'label', search)
    expect(search.reads).toBe(10)
  })

  test('answers as one that was made for the view', () => {
    const search = new ToolSearch()
    const list = listOf({
      tracker: TRACKER.slice(1),
      more: [tool('createIssue', 'Somebody else’s.')],
      sheets: SHEETS.slice(0, 2),
    })
    names(LIST, 'issue', search)
    for (const question of ['issue', 'list labels', 'delete', 'login'])
      expect(search.find(list, question, 10)).toEqual(new ToolSearch().find(list, question, 10))
  })

  test('a server under another display name is found by it', () => {
    const search = new ToolSearch()
    const renamed = (displayName: string): ReadyList => listOf({ a: TRACKER }, { key: 'a', prefix: 'a', displayName })
    expect(names(renamed('Falcon'), 'falcon', search)).toHaveLength(3)
    expect(names(renamed('Osprey'), 'falcon', search)).toEqual([])
    expect(names(renamed('Osprey'), 'osprey', search)).toHaveLength(3)
  })
})

test.each([
  ['\n  Lists things. And more.', 'Lists things.'],
  ['Reads e.g. v1.2 of it', 'Reads e.g.'],
  ['One line\nand another', 'One line'],
  ['删除文件。不可恢复。', '删除文件。'],
  ['x'.repeat(300), 'x'.repeat(200)],
  ['', ''],
])('the summary of %j is %j', (description, summary) => {
  expect(summaryOf(description)).toBe(summary)
})

test('of more arguments than 200 the first are found, nested ones included', () => {
  const many = (prefix: string): object => Object.fromEntries(Array.from({ length: 150 }, (_, at) => [`${prefix}${at}`, {}]))
  const entry = tool('t', '', { whole: { properties: many('inner') }, ...many('outer') })
  const [row] = listOf({ a: [entry] }).rows
  const found = toolText(row!, entry.raw).details.match(/(?:whole|(?:inner|outer)\d+)/g)
  expect(found?.length).toBe(200)
  expect([found?.[0], found?.at(-1)]).toEqual(['whole', 'outer48'])
})
