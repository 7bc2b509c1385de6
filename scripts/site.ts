/**
 * `node scripts/site.ts [FOLDER]`: builds the documentation as static files, from docs/ without network: navigation, search in
 * the browser, links to headings. It also works from a disk (`file:`); only the search needs a server.
 */
import { cpSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { basename, dirname, join, posix, resolve } from 'node:path'
import { Marked } from 'marked'
import MiniSearch from 'minisearch'
import { DOCS, navigation } from './site/pages.ts'
import type { Group } from './site/pages.ts'

interface Page {
  /** Below docs/, without `.md`. */
  readonly path: string
  readonly title: string
  readonly html: string
  /** Sections for the search: heading, anchor, words. */
  readonly sections: readonly { readonly heading: string; readonly anchor: string; readonly text: string }[]
  /** Links to pages, as they are written. */
  readonly broken: readonly string[]
}

const REPOSITORY = 'https://github.com/trunkline/trunkline/blob/main/'

/** Names the headings of one page as GitHub does, since the links within the pages are written for it: of two equal ones, the second ends with `-1`. */
export const anchorNamer = (): ((heading: string) => string) => {
  const counts = new Map<string, number>()
  return (heading) => {
    const name = heading
      .replaceAll(/[`*]|\]\([^)]*\)|\[/g, '')
      .toLowerCase()
      .replaceAll(/[^\p{L}\p{N}\s_-]/gu, '')
      .trim()
      .replaceAll(/\s/g, '-')
    const count = counts.get(name) ?? 0
    counts.set(name, count + 1)
    return count === 0 ? name : `${name}-${count}`
  }
}

const escapeHtml = (text: string): string =>
  text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;').replaceAll('"', '&quot;')

const readPage = (path: string, known: ReadonlySet<string>): Page => {
  const source = readFileSync(join(DOCS, `${path}.md`), 'utf8')
  const sections: { heading: string; anchor: string; text: string }[] = []
  const broken: string[] = []
  const anchorOf = anchorNamer()
  /** Pages of the site, else files of the repository. */
  const hrefOf = (href: string): string => {
    if (/^[a-z]+:|^#/.test(href)) return href
    const [target = '', anchor] = href.split('#')
    const inDocs = posix.normalize(posix.join(posix.dirname(path), target))
    const page = inDocs.replace(/\.md$/, '')
    if (target.endsWith('.md') && known.has(page))
      return `${target.replace(/\.md$/, '.html')}${anchor === undefined ? '' : `#${anchor}`}`
    if (target.endsWith('.md') && !inDocs.startsWith('..')) broken.push(href)
    return `${REPOSITORY}${posix.normalize(posix.join('docs', posix.dirname(path), target))}`
  }
  const marked = new Marked({
    gfm: true,
    renderer: {
      heading({ tokens, depth, text }) {
        const anchor = anchorOf(text)
        sections.push({ heading: text, anchor, text: '' })
        return `<h${depth} id="${anchor}">${this.parser.parseInline(tokens)} <a class="anchor" href="#${anchor}" aria-label="Link to this section">#</a></h${depth}>\n`
      },
      link({ href, tokens }) {
        return `<a href="${escapeHtml(hrefOf(href))}">${this.parser.parseInline(tokens)}</a>`
      },
      table(token) {
        const row = (cells: typeof token.header, tag: string): string =>
          `<tr>${cells.map((cell) => `<${tag}>${this.parser.parseInline(cell.tokens)}</${tag}>`).join('')}</tr>`
        return `<div class="table"><table><thead>${row(token.header, 'th')}</thead><tbody>${token.rows.map((cells) => row(cells, 'td')).join('')}</tbody></table></div>`
      },
    },
  })
  const html = marked.parse(source, { async: false })
  const [title = path] = /^# (.+)$/m.exec(source)?.slice(1) ?? []
  // By the parser: a comment in a script (`# …`) is no heading.
  const texts: string[] = []
  for (const token of marked.lexer(source)) {
    if (token.type === 'heading') texts.push('')
    else if (texts.length > 0) texts[texts.length - 1] += token.raw
  }
  return { path, title, html, broken, sections: sections.map((section, at) => ({ ...section, text: texts[at] ?? '' })) }
}

const layout = (page: Page, groups: readonly Group[], titles: ReadonlyMap<string, string>): string => {
  const up = '../'.repeat(page.path.split('/').length - 1)
  const item = (path: string): string =>
    `<li><a href="${up}${path}.html"${path === page.path ? ' aria-current="page"' : ''}>${escapeHtml(titles.get(path) ?? path)}</a></li>`
  const nav = groups
    .filter(({ pages }) => pages.length > 0)
    .map(
      ({ title, pages }) =>
        `<details${pages.includes(page.path) || title !== 'Decisions' ? ' open' : ''}><summary>${title}</summary><ul>${pages.map(item).join('')}</ul></details>`,
    )
    .join('')
  return `<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>${escapeHtml(page.title)} · Trunkline</title>
<link rel="stylesheet" href="${up}site.css">
<a class="skip" href="#content">Skip to content</a>
<header><a href="${up}index.html">Trunkline</a>
<input type="search" id="search" placeholder="Search" aria-label="Search" data-root="${up}" autocomplete="off"><ol id="results" hidden></ol></header>
<div class="columns"><nav aria-label="Pages">${nav}</nav><main id="content">${page.html}</main></div>
<script type="module" src="${up}site.js"></script>
</html>
`
}

/** Writes the site and returns its pages. Throws where a page links to one that is not there. */
export const buildSite = (folder: string): readonly string[] => {
  const groups = navigation(DOCS)
  const paths = groups.flatMap(({ pages }) => pages)
  const known = new Set(paths)
  const pages = paths.map((path) => readPage(path, known))
  const broken = pages.flatMap((page) => page.broken.map((link) => `docs/${page.path}.md → ${link}`))
  if (broken.length > 0) throw new Error(`links to pages that are not there:\n${broken.join('\n')}`)
  const titles = new Map(pages.map(({ path, title }) => [path, title]))
  rmSync(folder, { recursive: true, force: true })
  // Pictures lie where the pages name them.
  cpSync(DOCS, folder, {
    recursive: true,
    filter: (name) => !/\.[^./\\]+$/.test(basename(name)) || /\.(?:png|svg|jpg)$/.test(name),
  })
  for (const page of pages) {
    const file = join(folder, `${page.path}.html`)
    mkdirSync(dirname(file), { recursive: true })
    writeFileSync(file, layout(page, groups, titles))
  }
  const search = new MiniSearch({ fields: ['heading', 'text'], storeFields: ['heading', 'title', 'href'] })
  search.addAll(
    pages
      .filter(({ path }) => !path.startsWith('decisions/'))
      .flatMap(({ path, title, sections }) =>
        sections.map(({ heading, anchor, text }, at) => ({
          id: `${path} ${at}`,
          heading,
          title,
          text,
          href: `${path}.html#${anchor}`,
        })),
      ),
  )
  writeFileSync(join(folder, 'search.json'), JSON.stringify(search))
  writeFileSync(join(folder, 'minisearch.js'), readFileSync(new URL(import.meta.resolve('minisearch'))))
  for (const name of ['site.css', 'site.js'])
    writeFileSync(join(folder, name), readFileSync(join(import.meta.dirname, 'site', name)))
  return paths
}

if (import.meta.main) {
  const folder = resolve(process.argv[2] ?? join(DOCS, '../build/site'))
  process.stdout.write(`${buildSite(folder).length} pages in ${folder}\n`)
}
