/**
 * What a gateway and an attached `trunkline stdio` say to each other beside the messages of the host. Both are notifications on the
 * pipe between them and never reach a host or a server.
 */
export const RELAY = {
  /** Of the gateway: it is about to stop. What has come is answered; requests from now on belong to the process after it. */
  draining: 'notifications/dev.trunkline/draining',
  /** Of the relay, in answer: no request follows on this pipe. */
  holding: 'notifications/dev.trunkline/holding',
} as const
