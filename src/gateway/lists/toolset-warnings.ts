/** Logs findings about toolsets, each once. `listing`: the command that lists all names. */
import type { Log } from '../../values/log.ts'
import type { Feed } from './feed.ts'

export const warnOfToolsets = (feed: Feed, log: Log, listing: string): void => {
  const logged = new Set<string>()
  feed.catalog$.subscribe(() => {
    for (const finding of feed.summaries(listing).flatMap(({ findings }) => findings)) {
      if (logged.has(finding)) continue
      logged.add(finding)
      log.warn({}, finding)
    }
  })
}
