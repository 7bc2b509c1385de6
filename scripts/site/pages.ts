/** The navigation of the documentation site, by what a reader wants (Diátaxis). A page that no group names stands under Explanation. */
import { readdirSync } from 'node:fs'
import { join } from 'node:path'

export interface Group {
  readonly title: string
  /** Paths below docs/, without `.md`; a folder means every page in it. */
  readonly pages: readonly string[]
}

const GROUPS: readonly Group[] = [
  {
    title: 'Start',
    pages: ['index', 'start/personal', 'start/team', 'start/ci', 'start/bridge', 'stopwatch', 'symptoms', 'migration'],
  },
  { title: 'Hosts', pages: ['hosts', 'hosts/'] },
  {
    title: 'How-to',
    pages: [
      'authentication',
      'credentials',
      'secrets',
      'curation',
      'toolsets',
      'policy',
      'lock',
      'bridges',
      'proxies',
      'scale-out',
      'packaging',
      'faults',
      'tracing',
      'watching',
      'plan-check-why',
      'dashboard',
    ],
  },
  { title: 'Reference', pages: ['commands', 'configuration', 'operations', 'metrics', 'admin-api', 'protocol', 'reliability'] },
  { title: 'Explanation', pages: ['architecture', 'discovery', 'direct-and-through', 'differential', 'simulator', 'benchmarks'] },
  { title: 'Decisions', pages: ['decisions/'] },
]

/** Every page below `docs` in exactly one group, in the order above. */
export const navigation = (docs: string): readonly Group[] => {
  const all = readdirSync(docs, { recursive: true, encoding: 'utf8' })
    .map((name) => name.replaceAll('\\', '/'))
    .filter((name) => name.endsWith('.md'))
    .map((name) => name.slice(0, -'.md'.length))
    .toSorted()
  const taken = new Set<string>()
  const take = (name: string): readonly string[] => {
    const found = name.endsWith('/') ? all.filter((page) => page.startsWith(name)) : all.filter((page) => page === name)
    for (const page of found) taken.add(page)
    return found
  }
  const groups = GROUPS.map(({ title, pages }) => ({ title, pages: pages.flatMap(take) }))
  const rest = all.filter((page) => !taken.has(page))
  return groups.map((group) => (group.title === 'Explanation' ? { ...group, pages: [...group.pages, ...rest] } : group))
}

/** The folder of the pages. */
export const DOCS = join(import.meta.dirname, '../../docs')
