/** Where the programs lie that tests start as processes: bundled for this run (test/support/build.ts), else as they came. */
import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'

const BUILT = process.env['TEST_PEERS']

const conformance = createRequire(import.meta.url).resolve('@modelcontextprotocol/conformance/dist/index.js')

const peerSource = (name: string): string => join(import.meta.dirname, '..', 'peers', 'typescript', `${name}.ts`)

/** What each is made from, by its place in the folder of bundles. */
export const PEERS = {
  'reference-server': join(import.meta.dirname, 'reference-server.ts'),
  'sdk1-server': join(import.meta.dirname, 'sdk1-server.ts'),
  'fake-server': join(import.meta.dirname, 'children', 'fake-server.ts'),
  'conformance/dist/index': conformance,
  'typescript/host-sdk1': peerSource('host-sdk1'),
  'typescript/host-sdk2': peerSource('host-sdk2'),
  'typescript/server-sdk1': peerSource('server-sdk1'),
  'typescript/server-sdk2': peerSource('server-sdk2'),
} as const

/** The lists of scenarios that the conformance suite reads, beside its `dist`. */
export const REQUIREMENTS = join(dirname(dirname(conformance)), 'requirements')

/** The script to give to Node. */
export const peerProgram = (name: keyof typeof PEERS): string => (BUILT === undefined ? PEERS[name] : join(BUILT, `${name}.js`))
