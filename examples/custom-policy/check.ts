/** Starts the gateway of this example and calls through it, before, while and after a freeze is in force. */
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js'
import { Client } from '@modelcontextprotocol/sdk/client/index.js'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { saw, textOf } from '../run.ts'

const folder = mkdtempSync(join(tmpdir(), 'freeze-'))
const freeze = join(folder, 'FREEZE')
const program = fileURLToPath(new URL('gateway.ts', import.meta.url))
const gateway = spawn(process.execPath, [program, freeze], {
  stdio: ['ignore', 'pipe', 'inherit'],
  env: { ...process.env, FILES: folder, XDG_STATE_HOME: folder, XDG_RUNTIME_DIR: folder },
})
try {
  const [url] = (await once(createInterface(gateway.stdout), 'line')) as [string]
  const host = new Client({ name: 'agent', version: '1' })
  await host.connect(new StreamableHTTPClientTransport(new URL(url)))
  const write = (name: string) =>
    host.callTool({ name: 'files__write_file', arguments: { path: join(folder, name), content: 'x' } })

  saw(
    'without a freeze a file is written',
    (await write('before.txt')).isError !== true && existsSync(join(folder, 'before.txt')),
  )
  writeFileSync(freeze, 'release week, until Monday')
  const refused = await write('during.txt')
  saw(
    'while it is in force the model is told why',
    textOf(refused) === 'files__write_file is refused: release week, until Monday',
  )
  const bridged = new Client({ name: 'agent', version: '1' })
  await bridged.connect(new StreamableHTTPClientTransport(new URL('/servers/files/mcp', url)))
  const own = await bridged.callTool({ name: 'write_file', arguments: { path: join(folder, 'during.txt'), content: 'x' } })
  await bridged.close()
  saw(
    'at the address of the server alone, too, where its tools have no prefix',
    textOf(own) === 'write_file is refused: release week, until Monday',
  )
  saw('nothing reached the server', !existsSync(join(folder, 'during.txt')))
  const read = await host.callTool({ name: 'files__read_text_file', arguments: { path: join(folder, 'before.txt') } })
  saw('tools that only read go on', textOf(read) === 'x')
  rmSync(freeze)
  saw('afterwards files are written again', (await write('after.txt')).isError !== true && existsSync(join(folder, 'after.txt')))
  await host.close()
} finally {
  gateway.kill('SIGTERM')
  await once(gateway, 'exit')
  rmSync(folder, { recursive: true })
}
