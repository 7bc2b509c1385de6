/**
 * Notifications between a gateway and an attached `trunkline stdio`, beside the messages of the host. They are not relayed to hosts
 * or servers.
 */
export const RELAY = {
  /** From the gateway: it is about to stop. Received requests are answered; later requests must go to the next process. */
  draining: 'notifications/dev.trunkline/draining',
  /** From the relay, as the answer: no request follows on this pipe. */
  holding: 'notifications/dev.trunkline/holding',
} as const
