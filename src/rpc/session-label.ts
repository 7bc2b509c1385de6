/** Tells sessions apart without being one: the id itself is as good as a credential. */
import { hash } from 'node:crypto'

export const sessionLabel = (id: string): string => hash('sha256', id).slice(0, 12)
