/** The documentation site: every page is in it once, every link within it leads somewhere, and the search finds what pages say. */
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import MiniSearch from 'minisearch'
import { afterAll, expect, test } from 'vitest'
import { buildSite } from '../../scripts/site.ts'

const folder = mkdtempSync(join(tmpdir(), 'trunkline-site-'))
afterAll(() => rmSync(folder, { recursive: true, force: true }))
const pages = buildSite(folder)
const html = (page: string): string => readFileSync(join(folder, `${page}.html`), 'utf8')

test('every page of docs is in the navigation once', () => {
  expect(pages.length).toBeGreaterThan(100)
  expect(new Set(pages).size).toBe(pages.length)
  for (const page of ['index', 'commands', 'configuration', 'hosts/cursor', 'migration']) expect(pages).toContain(page)
})

test('every link within the site leads to a file and, where it names one, to a heading', () => {
  const broken = pages.flatMap((page) => {
    const text = html(page)
    const links = [...text.matchAll(/ (?:href|src)="(?![a-z]+:)([^"#]*)(?:#([^"]*))?"/g)]
    return links.flatMap(([, target = '', anchor]) => {
      const file = target === '' ? `${page}.html` : join(dirname(page), target)
      if (!existsSync(join(folder, file))) return [`${page} → ${target}`]
      const isThere = anchor === undefined || readFileSync(join(folder, file), 'utf8').includes(` id="${decodeURI(anchor)}"`)
      return isThere ? [] : [`${page} → ${target}#${anchor}`]
    })
  })
  expect(broken).toEqual([])
})

test('no two headings of a page have one anchor', () => {
  const twice = pages.flatMap((page) => {
    const anchors = [...html(page).matchAll(/<h\d id="([^"]*)"/g)].map(([, anchor]) => `${page}#${anchor}`)
    return anchors.filter((anchor, at) => anchors.indexOf(anchor) !== at)
  })
  expect(twice).toEqual([])
})

test('nothing is loaded from elsewhere, and the search finds an option by its name', () => {
  for (const page of pages) expect(html(page), page).not.toMatch(/<(?:script|link|img)[^>]+(?:src|href)="https?:/)
  const index = MiniSearch.loadJSON(readFileSync(join(folder, 'search.json'), 'utf8'), {
    fields: ['heading', 'text'],
    storeFields: ['heading', 'title', 'href'],
  })
  expect(index.search('proxy_protocol').map(({ href }) => String(href))).toEqual(
    expect.arrayContaining([expect.stringContaining('proxies.html#')]),
  )
})
