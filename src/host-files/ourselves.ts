/** Whether an entry of a host's file is Trunkline itself: such an entry is not imported, or we would be a server of our own. */
import { basename } from 'node:path'
import { isList } from '../values/json-object.ts'
import { OUR_NAME } from './hosts.ts'

/** `draft`: the entry in our form. An entry of our name counts whatever it says. */
export const isOurselves = (name: string, { command, args }: Readonly<Record<string, unknown>>): boolean => {
  if (name === OUR_NAME) return true
  const words = [command, ...(isList(args) ? args : [])].filter((word) => typeof word === 'string')
  const at = words.indexOf('stdio')
  return at > 0 && words.slice(0, at).some((word) => /^trunkline(@.*)?$/.test(basename(word)))
}
