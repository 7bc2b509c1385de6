/** Hosts that reach Trunkline over Streamable HTTP and HTTP+SSE, each with every kind of downstream. */
import { gatewayMatrix } from './gateway-matrix.ts'
import { hostsOver } from './gateway-cells.ts'

gatewayMatrix(hostsOver('http', 'sse'))
