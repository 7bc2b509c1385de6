/** A server whose program is taken away and put back, as an upgrade does (`timeouts.grace`; BRIDGING 3.1). */
import { rm, symlink } from 'node:fs/promises'
import { fileURLToPath } from 'node:url'
import { expect, test } from 'vitest'
import { commandLine } from '../../support/cli.ts'

const FAKE = fileURLToPath(new URL('../../support/children/fake-server.ts', import.meta.url))

test.each([
  ['within the grace its tools stay listed, and it is back with its program', '60s', 'a__echo'],
  ['after the grace they are withdrawn', '1ms', ''],
])(
  '%s',
  async (_, grace, listed) => {
    await using cli = await commandLine()
    await symlink(process.execPath, cli.path('program'))
    const entry = { command: './program', args: [FAKE, 'good', cli.path('log')], timeouts: { grace } }
    await cli.write('trunkline.yaml', JSON.stringify({ version: 1, servers: { a: entry } }))
    await using up = await cli.up()
    await up.said(/MCP/)
    await rm(cli.path('program'))
    process.kill(Number(cli.log('log')[0]!.split(' ')[1]), 'SIGKILL')
    await up.said(/program.*not (?:found|there)|ENOENT/)
    const { stdout } = await cli.run(['tools', 'echo'])
    expect(stdout.split(' ')[0]!.trim()).toBe(listed)
    if (listed === '') return
    await symlink(process.execPath, cli.path('program'))
    await expect.poll(async () => (await cli.run(['call', 'a__echo', 'text=back'])).stdout, { timeout: 40_000 }).toBe('back\n')
  },
  90_000,
)
