/** What `up` says of the servers of hosts. */
import { expect, test } from 'vitest'
import { foundHead } from '../../../src/commands/setup/found.ts'
import { formatLines } from '../../../src/commands/terminal/print.ts'
import type { Discovered } from '../../../src/host-files/discovered.ts'
import type { FoundServer } from '../../../src/host-files/found.ts'
import type { Scope } from '../../../src/host-files/hosts.ts'

const [CLAUDE, CURSOR] = ['/home/me/.claude.json', '/work/.cursor/mcp.json']

const server = (key: string, host: 'claude-code' | 'cursor', scope: Scope, file: string, enabled = true) => ({
  key,
  draft: { enabled },
  // Cast: what is read of a place.
  from: [{ host, scope, file } as FoundServer],
})

test('each file of a host is told with its own servers that are on, also where a file has those of a project and those of all', () => {
  const servers = [
    server('here', 'claude-code', 'local', CLAUDE),
    server('everywhere', 'claude-code', 'user', CLAUDE),
    server('team', 'cursor', 'user', CURSOR, false),
  ]
  const found = servers.map(({ from }) => ({ ...from[0]!, servers: from }))
  const both = { ...servers[0]!, key: 'both', from: [servers[0]!, servers[1]!].flatMap(({ from }) => from) }
  // Cast: what is read.
  const discovered = { from: [], found, plan: { servers: [...servers, both] } } as unknown as Discovered
  const text = formatLines(foundHead(discovered, { cwd: '/work', home: '/home/me' }))
  expect(
    text
      .trim()
      .split(/\n +/)
      .map((line) => line.replaceAll(/ +/g, ' ')),
  ).toEqual([
    'found 3 servers in Claude Code (read-only; trunkline init saves them)',
    'Claude Code ~/.claude.json here, both',
    'Claude Code ~/.claude.json everywhere, both',
    'Cursor .cursor/mcp.json all disabled',
  ])
})
