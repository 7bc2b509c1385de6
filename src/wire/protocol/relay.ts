/**
 * Notifications between a gateway and an attached `trunkline stdio`, which relays the messages of a host. They are never sent to hosts or
 * servers.
 */
export const RELAY = {
  /** From the gateway: it is about to stop. It answers the requests that it has; later ones must go to the next process. */
  draining: 'notifications/dev.trunkline/draining',
  /** From the relay, as the answer to `draining`: no further request follows on this pipe. */
  holding: 'notifications/dev.trunkline/holding',
} as const
