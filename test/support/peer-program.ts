/** Where the programs lie that tests start as processes: bundled for this run (test/support/build.ts), else as they came. */
import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'

const BUILT = process.env['TEST_PEERS']

const require = createRequire(import.meta.url)
const conformance = require.resolve('@modelcontextprotocol/conformance/dist/index.js')
const inspector = dirname(require.resolve('@modelcontextprotocol/inspector/package.json'))

const peerSource = (name: string): string => join(import.meta.dirname, '..', 'peers', 'typescript', `${name}.ts`)

/** What each is made from, by its place in the folder of bundles. */
export const PEERS = {
  'reference-server': join(import.meta.dirname, 'reference-server.ts'),
  'sdk1-server': join(import.meta.dirname, 'sdk1-server.ts'),
  'fake-server': join(import.meta.dirname, 'children', 'fake-server.ts'),
  'conformance/dist/index': conformance,
  // The launcher imports the other one by its place.
  'inspector/clients/launcher/build/index': join(inspector, 'clients/launcher/build/index.js'),
  'inspector/clients/cli/build/index': join(inspector, 'clients/cli/build/index.js'),
  'typescript/host-sdk1': peerSource('host-sdk1'),
  'typescript/host-sdk2': peerSource('host-sdk2'),
  'typescript/server-sdk1': peerSource('server-sdk1'),
  'typescript/server-sdk2': peerSource('server-sdk2'),
} as const

/** What they read of their packages, by its place in the folder of bundles: the suite its lists of scenarios, the Inspector its version. */
export const BESIDE = {
  'conformance/requirements': join(dirname(dirname(conformance)), 'requirements'),
  'inspector/package.json': join(inspector, 'package.json'),
} as const

/** The script to give to Node. */
export const peerProgram = (name: keyof typeof PEERS): string => (BUILT === undefined ? PEERS[name] : join(BUILT, `${name}.js`))
