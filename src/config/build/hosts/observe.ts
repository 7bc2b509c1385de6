/** Options of `admin`, `ui` and `telemetry.prometheus`. */
import type { HostOptions } from '../../../host/options.ts'
import { isLoopbackHost } from '../../../transport/loopback.ts'
import { DEFAULT_OBSERVE } from '../../../observe/options.ts'
import type { ObserveOptions } from '../../../observe/options.ts'
import { adminSchema, captureSchema, prometheusSchema, uiSchema } from '../../schema/observe-schema.ts'
import { fillFrom } from '../fill.ts'
import type { Gathered } from '../../read/gather.ts'
import { reporterAt } from '../../syntax/problems.ts'
import type { Problem } from '../../syntax/problems.ts'

/** Adds problems for an address that the network reaches without authentication, and for one of the MCP endpoints. */
export const buildObserve = ({ settings, sections }: Gathered, host: HostOptions, problems: Problem[]): ObserveOptions => {
  const { admin, capture, metrics } = DEFAULT_OBSERVE
  const options: ObserveOptions = {
    admin: fillFrom(uiSchema, fillFrom(adminSchema, admin, settings.admin), settings.ui),
    capture: fillFrom(captureSchema, capture, settings.ui?.capture),
    metrics: fillFrom(prometheusSchema, metrics, settings.telemetry?.prometheus),
  }
  const report = reporterAt(sections.get('admin'), problems)
  for (const { host: name, port } of options.admin.addresses) {
    const isSame = host.addresses.some((address) => address.host === name && address.port === port && port !== 0)
    if (isSame) report(['bind'], `${name}:${port} is an address of listen.http.bind`, 'choose another port, such as 7421')
    else if (!isLoopbackHost(name) && host.auth === undefined)
      report(
        ['bind'],
        `${name}:${port} can be reached from the network, and operators are not authenticated`,
        'configure auth, or bind 127.0.0.1',
      )
  }
  return options
}
