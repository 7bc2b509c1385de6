/** `admin`, `ui` and `telemetry.prometheus`: the listener for operators, the dashboard and the metrics. */
import { z } from 'zod'
import { DEFAULT_OBSERVE } from '../../observe/options.ts'
import { addresses, choice, field, fieldsOf, flag, hostName, scope, urlPath } from './kinds.ts'

const A = fieldsOf(DEFAULT_OBSERVE.admin)
const C = fieldsOf(DEFAULT_OBSERVE.capture)
const M = fieldsOf(DEFAULT_OBSERVE.metrics)

export const adminSchema = z.strictObject({
  bind: field(
    addresses,
    'Addresses of the admin listener: API, dashboard and metrics, never on the MCP port. Without it, `trunkline open` opens the listener at `127.0.0.1:7421`. An address that the network reaches needs `auth`.',
    undefined,
    'addresses',
  ),
  allowed_hosts: A.of(
    'allowedHosts',
    z.array(hostName),
    'Names that its `Host` header may contain, in addition to the loopback ones.',
  ),
  connections: A.count('maxConnections', 'Open connections of the admin listener.'),
  operator_scope: A.of(
    'operatorScope',
    scope,
    'The OAuth scope that gives access to everything there. Other callers of the MCP endpoints see their own calls only.',
  ),
})

export const captureSchema = z.strictObject({
  bodies: C.of(
    'bodies',
    choice('off', 'errors', 'all'),
    'The calls whose requests and answers are kept, on both sides, without secrets: none, failed ones, or all.',
  ),
  ring: C.size('maxBytes', 'Memory for captured calls; the oldest are dropped first.'),
  ttl: C.duration('maxAgeMs', 'How long a call is kept.'),
  body: C.size('maxBodyBytes', 'Bytes kept of one message; of a larger one the beginning and the end.'),
  readers: C.count('maxReaders', 'Readers of the live feed at one time.'),
})

export const uiSchema = z.strictObject({
  enabled: A.of('hasUi', flag, 'The dashboard and its API, and the capture of calls, while the admin listener is open.'),
  write: A.of(
    'mayWrite',
    flag,
    'The dashboard may restart, reload, approve, and call tools that do more than read. `false`: it is read-only.',
  ),
  capture: field(captureSchema, 'Capture of calls, in memory only.'),
})

export const prometheusSchema = z.strictObject({
  enabled: M.of('isOn', flag, 'Calls are counted while the admin listener is open.'),
  path: M.of('path', urlPath, 'Path of the metrics.'),
  series: M.count(
    'maxSeries',
    'Tools and prompts with their own series; further ones are counted together as `other`.',
    1,
    100_000,
  ),
})
