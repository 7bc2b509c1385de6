/** All authorization servers whose tokens are accepted, the one that hosts are sent to first. */
import type { IssuerOptions, ResourceServerOptions } from './inbound-options.ts'

export const issuersOf = (options: ResourceServerOptions): readonly IssuerOptions[] => [options, ...options.otherIssuers]
