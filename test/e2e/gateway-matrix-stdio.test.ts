/** Hosts that start Trunkline themselves and speak to it over stdio, each with every kind of downstream. */
import { gatewayMatrix } from './gateway-matrix.ts'
import { hostsOver } from './gateway-cells.ts'

gatewayMatrix(hostsOver('stdio'))
