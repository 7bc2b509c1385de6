/** Tells the log what is odd about toolsets, each sentence once. `listing`: the command that lists the names there are. */
import type { Log } from '../../downstream/environment.ts'
import type { Feed } from './feed.ts'

export const warnOfToolsets = (feed: Feed, log: Log, listing: string): void => {
  const told = new Set<string>()
  feed.catalog$.subscribe(() => {
    for (const finding of feed.summaries(listing).flatMap(({ findings }) => findings)) {
      if (told.has(finding)) continue
      told.add(finding)
      log.warn({}, finding)
    }
  })
}
