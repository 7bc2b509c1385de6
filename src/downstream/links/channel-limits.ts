/** The limits of channels, from the options of their server. */
import type { ChannelLimits } from '../../transport/channel/channel.ts'
import type { ServerOptions } from '../options.ts'

export const limitsOf = ({ limits }: ServerOptions): ChannelLimits => ({
  maxMessageBytes: limits.maxMessageBytes,
  maxQueuedBytes: limits.maxWriteQueueBytes,
})
