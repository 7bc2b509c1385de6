/**
 * The child that stands for a stdio server: it connects its pipes to a port of the test, which plays the server. In Perl where
 * test/support/build.ts found it, else in Node.
 */
import { fileURLToPath } from 'node:url'

const PERL = process.env['TEST_PERL']
const script = (name: string): string => fileURLToPath(new URL(`children/${name}`, import.meta.url))

export interface RelayCommand {
  readonly command: string
  /** The last one is the port. */
  readonly args: readonly string[]
}

/** `--plain`: bytes as they are, without frames. */
export const relayCommand = (port: number, ...options: '--plain'[]): RelayCommand => ({
  command: PERL ?? process.execPath,
  args: [script(PERL === undefined ? 'relay.mjs' : 'relay.pl'), ...options, String(port)],
})
