/** What a host's file would hold with our entry alone: for `connect --print`, and for the pages of the documentation. */
import { setIn } from './edit/editor.ts'
import { OUR_NAME } from '../config/read/host-file.ts'
import type { HostEntry, HostPlace } from './hosts.ts'

export const editedText = ({ path, at, isList }: HostPlace, entry: HostEntry): string =>
  isList === true ? setIn(path, '', [...at, 0], { name: OUR_NAME, ...entry }) : setIn(path, '', [...at, OUR_NAME], entry)
