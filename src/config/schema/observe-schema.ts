/** `admin`, `ui` and `telemetry.prometheus`: the listener for operators, the dashboard and the metrics. */
import { z } from 'zod'
import { DEFAULT_OBSERVE } from '../../observe/options.ts'
import { addresses, choice, countField, durationField, field, flag, hostName, scope, sizeField, urlPath } from './kinds.ts'

const { admin: A, capture: C, metrics: M } = DEFAULT_OBSERVE

export const adminSchema = z.strictObject({
  bind: field(
    addresses,
    'Addresses of the admin listener: API, dashboard and metrics, never on the MCP port. Without it, `trunkline open` opens the listener at `127.0.0.1:7421`. An address that the network reaches needs `auth`.',
  ),
  allowed_hosts: field(
    z.array(hostName),
    'Names that its `Host` header may contain, in addition to the loopback ones.',
    A.allowedHosts,
  ),
  connections: countField('Open connections of the admin listener.', A.maxConnections),
  operator_scope: field(
    scope,
    'The OAuth scope that gives access to everything there. Other callers of the MCP endpoints see their own calls only.',
    A.operatorScope,
  ),
})

export const uiSchema = z.strictObject({
  enabled: field(flag, 'The dashboard and its API, and the capture of calls, while the admin listener is open.', A.hasUi),
  write: field(
    flag,
    'The dashboard may restart, reload, approve, and call tools that do more than read. `false`: it is read-only.',
    A.mayWrite,
  ),
  capture: field(
    z.strictObject({
      bodies: field(
        choice('off', 'errors', 'all'),
        'The calls whose requests and answers are kept, on both sides, without secrets: none, failed ones, or all.',
        C.bodies,
      ),
      ring: sizeField('Memory for captured calls; the oldest are dropped first.', C.maxBytes),
      ttl: durationField('How long a call is kept.', C.maxAgeMs),
      body: sizeField('Bytes kept of one message; of a larger one the beginning and the end.', C.maxBodyBytes),
      readers: countField('Readers of the live feed at one time.', C.maxReaders),
    }),
    'Capture of calls, in memory only.',
  ),
})

export const prometheusSchema = z.strictObject({
  enabled: field(flag, 'Calls are counted while the admin listener is open.', M.isOn),
  path: field(urlPath, 'Path of the metrics.', M.path),
  series: countField(
    'Tools and prompts with their own series; further ones are counted together as `other`.',
    M.maxSeries,
    1,
    100_000,
  ),
})
