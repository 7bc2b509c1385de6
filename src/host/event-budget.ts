/**
 * What the event logs of all sessions may keep together. When it is used up, the sessions that were written to longest ago lose
 * their oldest events first: they are the least likely to come back for them (RELIABILITY 7; T-32).
 */
import { formatMiB } from './mib.ts'
import type { Log } from './hub.ts'
