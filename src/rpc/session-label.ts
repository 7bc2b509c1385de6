/** A short hash that stands for a session id in logs and views. The id itself is a credential, so it is never shown. */
import { hash } from 'node:crypto'

export const sessionLabel = (id: string): string => hash('sha256', id).slice(0, 12)
