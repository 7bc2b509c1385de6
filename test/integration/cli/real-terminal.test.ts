/** What a person sees in a terminal: tmux draws what the program writes, and gives it back as text. */
import { execFileSync } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { existsSync, readFileSync } from 'node:fs'
import { chmod, mkdir, writeFile } from 'node:fs/promises'
import { expect, onTestFinished, test, vi } from 'vitest'
import { commandLine } from '../../support/cli.ts'
import type { Cli } from '../../support/cli.ts'
import { PROGRAM } from '../../support/program.ts'
import { describeWith } from '../../support/programs.ts'

interface Terminal {
  /** The rows of the screen; `codes`: with the codes of its colours. */
  rows(codes?: boolean): readonly string[]
  keys(...names: readonly string[]): void
  /** As when its window is closed. */
  close(): void
}

/** A terminal of this size in which the command line runs in the folder of `cli`; `job`: as a job of a shell that has jobs. */
const openTerminal = (cli: Cli, words: string, { columns = 80, rows = 24, env = '', job }: TerminalOptions = {}): Terminal => {
  // A server of its own, without the settings of the person that runs the test.
  const name = `trunkline-${randomUUID()}`
  const tmux = (...args: readonly string[]): string =>
    execFileSync('tmux', ['-f', '/dev/null', '-L', name, ...args], { env: { ...cli.env, TERM: 'xterm-256color' } }).toString()
  const program = `env ${env} ${process.execPath} ${PROGRAM} ${words}`
  const started = {
    front: `set -m; ${program}; echo stopped $?; read line; fg`,
    back: `set -m; ${program} & wait`,
    none: program,
  }[job ?? 'none']
  const command = `trap : INT; cd ${cli.folder}; ${started}; echo ended $?; exec cat`
  tmux('new-session', '-d', '-x', String(columns), '-y', String(rows), 'sh', '-c', command)
  let isOpen = true
  const close = (): void => {
    if (isOpen) tmux('kill-server')
    isOpen = false
  }
  onTestFinished(close)
  return {
    rows: (codes = false) =>
      tmux('capture-pane', '-p', ...(codes ? ['-e'] : []))
        .trimEnd()
        .split('\n'),
    keys: (...names) => void tmux('send-keys', ...names),
    close,
  }
}

interface TerminalOptions {
  readonly columns?: number
  readonly rows?: number
  readonly env?: string
  readonly job?: 'front' | 'back'
}

const shown = (terminal: Terminal, pattern: RegExp): Promise<string> =>
  vi.waitUntil(() => terminal.rows().join('\n').match(pattern)?.[0], { timeout: 25_000, interval: 100 })

/** Presses a key until the screen shows what it does: a program that was just started or goes on again may not read keys yet. */
const pressed = async (terminal: Terminal, key: string, pattern: RegExp): Promise<void> => {
  await vi.waitUntil(
    () => {
      if (pattern.test(terminal.rows().join('\n'))) return true
      terminal.keys(key)
      return false
    },
    { timeout: 25_000, interval: 1_000 },
  )
}

/** `ps` ends with this code, now or soon. */
const psEnds = (cli: Cli, code: number): Promise<void> =>
  expect.poll(async () => (await cli.here('ps')).code, { timeout: 20_000 }).toBe(code)

/** A configuration with a server that works and, behind a `npx` that takes its time, one that is cold. */
const laid = async (): Promise<Cli> => {
  const cli = await commandLine()
  await mkdir(cli.path('bin'))
  await writeFile(cli.path('bin/npx'), '#!/bin/sh\necho "npm warn exec cold-package will be installed" >&2\nexec sleep 60\n')
  await chmod(cli.path('bin/npx'), 0o755)
  cli.env['PATH'] = `${cli.path('bin')}:${cli.env['PATH']}`
  await cli.write(
    'trunkline.yaml',
    `listen: { http: { bind: 127.0.0.1:0 } }\nservers:\n  good: ${cli.fake()}\n  cold: { command: npx, args: [-y, cold-package] }\n  gone: { command: no-such-program }\n`,
  )
  return cli
}

describeWith(['tmux'], 'in a terminal', () => {
  test('a cold npx says for how long and what it does; colour is for trouble alone; Ctrl-C ends', async () => {
    await using cli = await laid()
    const terminal = openTerminal(cli, 'up', { columns: 160 })
    await shown(
      terminal,
      /cold +starting[^]*for \d+ s: npx downloads a package that it does not have yet; npm warn exec cold-package/,
    )
    const coloured = terminal.rows(true)
    expect(coloured.find((row) => row.includes('good '))).not.toContain('\u001b[3')
    expect(coloured.find((row) => row.includes('gone '))).toMatch(/\u001b\[31m✗/)
    terminal.keys('C-c')
    await shown(terminal, /ended 0/)
  }, 60_000)

  test('import asks before it changes a configuration, and after a no writes nothing', async () => {
    await using cli = await laid()
    const before = readFileSync(cli.path('trunkline.yaml'), 'utf8')
    await mkdir(cli.path('home/.cursor'), { recursive: true })
    await writeFile(cli.path('home/.cursor/mcp.json'), '{ "mcpServers": { "new": { "command": "y" } } }')
    const terminal = openTerminal(cli, 'import')
    await shown(terminal, /Write \S*trunkline\.yaml\? \[Y\/n\]/)
    terminal.keys('n', 'Enter')
    await shown(terminal, /nothing was written[^]*ended 0/)
    expect(readFileSync(cli.path('trunkline.yaml'), 'utf8')).toBe(before)
  }, 60_000)

  test('a narrow terminal gets the reason on a line of its own, and no row is wider than it', async () => {
    await using cli = await laid()
    const terminal = openTerminal(cli, 'ps', { columns: 44 })
    await shown(terminal, /ended 4/)
    await using up = await cli.up()
    await up.said(/MCP/)
    const narrow = openTerminal(cli, 'ps', { columns: 44 })
    await shown(narrow, /ended 0/)
    expect(
      narrow
        .rows()
        .filter((row) => /^ {2}[●○✗▲] /.test(row))
        .map((row) => row.trim().split(/\s+/).slice(1, 3).join(' ')),
    ).toEqual(['good healthy', 'cold starting', 'gone failed'])
    expect(narrow.rows().some((row) => /^ {6}spawn no-such-program/.test(row))).toBe(true)
  }, 60_000)

  test('top shows as many servers as fit, the busiest first, with its figures in place', async () => {
    await using cli = await commandLine()
    const names = Array.from({ length: 30 }, (_, at) => `server${at}`)
    const row = (name: string): string => `  ${name}: ${name === 'server29' ? cli.fake() : '{ command: no-such-program }'}\n`
    await cli.write('trunkline.yaml', `servers:\n${names.map(row).join('')}`)
    await using up = await cli.up()
    await up.said(/MCP|ready/)
    const terminal = openTerminal(cli, 'top', { rows: 14 })
    await shown(terminal, /SERVER[^]*… \d+ more servers/)
    await expect
      .poll(async () => (await cli.here('call', 'server29__echo', 'text=x'), terminal.rows().join('\n')), { timeout: 25_000 })
      .toMatch(/^SERVER .*\nserver29 +healthy +[1-9][^]*server0 +[^]*… \d+ more servers\n\nTOOL .*\nserver29__echo /)
    expect(terminal.rows().length).toBeLessThan(14)
    terminal.keys('C-c')
    await shown(terminal, /ended 0/)
  }, 60_000)

  test('NO_COLOR has no colour, and TERM=dumb neither colour nor a screen that changes', async () => {
    await using cli = await laid()
    for (const env of ['NO_COLOR=1', 'TERM=dumb']) {
      const terminal = openTerminal(cli, 'up', { env, columns: 160 })
      await shown(terminal, /gone +failed[^]*spawn no-such-program/)
      expect(terminal.rows(true).join('\n'), env).not.toContain('\u001b[3')
      if (env === 'TERM=dumb') expect(terminal.rows()[0]).toMatch(/^trunkline is ready: /)
      terminal.keys('C-c')
      await shown(terminal, /ended 0/)
    }
  }, 60_000)

  test('the key o opens the dashboard in a browser, no other key is shown, and afterwards the terminal is as it was', async () => {
    await using cli = await laid()
    await writeFile(cli.path('bin/xdg-open'), `#!/bin/sh\necho "$1" >${cli.path('opened')}\n`)
    await chmod(cli.path('bin/xdg-open'), 0o755)
    const terminal = openTerminal(cli, 'up', { columns: 160 })
    await shown(terminal, /gone +failed[^]*o opens the dashboard, Ctrl-C ends/)
    expect(terminal.rows().join('\n')).not.toMatch(/#k=/)
    terminal.keys('x', 'Up', 'o')
    const [url = ''] = (await shown(terminal, /UI +http:\/\/127\.0\.0\.1:\d+\/#k=\S+/)).match(/http\S+/) ?? []
    await vi.waitUntil(() => existsSync(cli.path('opened')) && readFileSync(cli.path('opened'), 'utf8').trim() === url)
    expect((await fetch(url)).status).toBe(200)
    expect(terminal.rows().join('\n')).not.toMatch(/^[xo]|\^\[|no browser/m)
    terminal.keys('C-c')
    await shown(terminal, /ended 0/)
    // The terminal shows what is typed again, and what `cat` answers to a whole line.
    terminal.keys('typed', 'Enter')
    await shown(terminal, /^typed\ntyped$/m)
  }, 60_000)

  test('--open opens it at once', async () => {
    await using cli = await laid()
    await writeFile(cli.path('bin/xdg-open'), `#!/bin/sh\necho "$1" >${cli.path('opened')}\n`)
    await chmod(cli.path('bin/xdg-open'), 0o755)
    const terminal = openTerminal(cli, 'up --open', { columns: 160 })
    const [url = ''] = (await shown(terminal, /UI +http:\/\/127\.0\.0\.1:\d+\/#k=\S+/)).match(/http\S+/) ?? []
    await vi.waitUntil(() => existsSync(cli.path('opened')) && readFileSync(cli.path('opened'), 'utf8').trim() === url)
    terminal.keys('C-c')
    await shown(terminal, /ended 0/)
  }, 60_000)

  test('Ctrl-Z stops it and fg goes on with it; without a browser the key o shows the link to open', async () => {
    await using cli = await laid()
    const terminal = openTerminal(cli, 'up', { columns: 160, job: 'front', env: `PATH=${cli.path('bin')}` })
    await shown(terminal, /gone +failed[^]*Ctrl-C ends/)
    terminal.keys('C-z')
    // The shell waits for a line: the program would draw over what it says.
    await shown(terminal, /stopped \d+/)
    terminal.keys('Enter')
    await pressed(terminal, 'o', /UI +http:\/\/\S+#k=\S+\s+no browser can be started here: open this link in one/)
    await pressed(terminal, 'C-c', /ended 0/)
  }, 60_000)

  test('as a job in the background it serves, and the terminal does not stop it', async () => {
    await using cli = await laid()
    const terminal = openTerminal(cli, 'up', { columns: 160, job: 'back' })
    // No closed terminal ends a job in the background.
    const end = async (): Promise<void> => {
      const { pid } = JSON.parse((await cli.here('ps', '--json')).stdout || '{}') as { pid?: number }
      if (pid !== undefined) process.kill(pid, 'SIGTERM')
    }
    onTestFinished(end)
    await shown(terminal, /gone +failed[^]*Ctrl-C ends/)
    await psEnds(cli, 0)
    await end()
    await shown(terminal, /ended 0/)
  }, 60_000)

  test('F-22 a window that is closed ends what was started in it', async () => {
    await using cli = await laid()
    const terminal = openTerminal(cli, 'up', { columns: 160 })
    await shown(terminal, /good +healthy/)
    await psEnds(cli, 0)
    terminal.close()
    await psEnds(cli, 4)
  }, 60_000)
})
