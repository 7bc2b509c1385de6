/** What may stand under `admin`, `ui` and `telemetry.prometheus`: the listener of operators, what it shows, and what is counted. */
import { z } from 'zod'
import { DEFAULT_OBSERVE } from '../../observe/options.ts'
import { addresses, choice, countField, durationField, field, flag, hostName, kind, sizeField, urlPath } from './kinds.ts'

const { admin: A, capture: C, metrics: M } = DEFAULT_OBSERVE

const scope = kind('a scope: visible characters without blanks, " and \\', { type: 'string' }, (value) =>
  typeof value === 'string' && /^[\x21\x23-\x5b\x5d-\x7e]{1,255}$/.test(value) ? value : undefined,
)

export const adminSchema = z.strictObject({
  bind: field(
    addresses,
    'Where the admin listener is: API, dashboard and metrics, never on the MCP port. Without it the listener is closed until `trunkline open` asks for it, then at `127.0.0.1:7421`. An address that the network reaches needs `auth`.',
  ),
  allowed_hosts: field(
    z.array(hostName),
    'Names beside the loopback ones that the `Host` header may carry there.',
    A.allowedHosts,
  ),
  connections: countField('Open connections of the admin listener.', A.maxConnections),
  operator_scope: field(
    scope,
    'The OAuth scope whose owners see everything there. All others who may come in at the MCP endpoints see their own calls alone.',
    A.operatorScope,
  ),
})

export const uiSchema = z.strictObject({
  enabled: field(flag, 'The dashboard and its API, and the capture of calls, while the admin listener is open.', A.hasUi),
  write: field(
    flag,
    'The dashboard may restart, reload, approve, and call tools that do more than read. Without it, it only shows.',
    A.mayWrite,
  ),
  capture: field(
    z.strictObject({
      bodies: field(
        choice('off', 'errors', 'all'),
        'Whose requests and answers are kept, on both sides, without secrets: of no call, of those that ended with an error, of each.',
        C.bodies,
      ),
      ring: sizeField('Memory for captured calls; the oldest go first.', C.maxBytes),
      ttl: durationField('How long a call is kept.', C.maxAgeMs),
      body: sizeField('Kept of one message; of a larger one the beginning and the end.', C.maxBodyBytes),
      readers: countField('Readers of the live feed at one time.', C.maxReaders),
    }),
    'What is kept of calls, in memory alone.',
  ),
})

export const prometheusSchema = z.strictObject({
  enabled: field(flag, 'Calls are counted while the admin listener is open.', M.isOn),
  path: field(urlPath, 'Where they can be scraped.', M.path),
  series: countField(
    'Tools and prompts that have series of their own; further ones are counted together as `other`.',
    M.maxSeries,
    1,
    100_000,
  ),
})
