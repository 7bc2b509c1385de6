/** Capabilities that a host or a server declares: without `null`, which many libraries write for an absent member (BRIDGING 3.22; B282). */
import { isJsonObject } from '../values/json-object.ts'
import type { UnknownObject } from '../values/json-object.ts'

/** Capabilities whose own members are capabilities, too. The contents of others are unknown and stay. */
const NESTED: ReadonlySet<string> = new Set(['elicitation', 'sampling', 'roots', 'extensions'])

export const declaredOnly = (capabilities: UnknownObject): UnknownObject =>
  Object.fromEntries(
    present(capabilities).map(([name, value]) => [
      name,
      NESTED.has(name) && isJsonObject(value) ? Object.fromEntries(present(value)) : value,
    ]),
  )

const present = (object: UnknownObject): [string, unknown][] => Object.entries(object).filter(([, value]) => value !== null)
