/**
 * `node scripts/moving-picture.ts`: docs/images/terminal.svg, the animation in README. Runs the commands that it shows in a real
 * terminal (tmux) of this checkout and records the output; only waits are shortened. Needs tmux and port 7420.
 */
import { execFileSync } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'

const ROOT = fileURLToPath(new URL('..', import.meta.url))
const [COLUMNS, ROWS] = [96, 16]
const SAMPLE_MS = 80
/** A pause longer than this is shortened to it. */
const MAX_PAUSE_MS = 1_100
/** The last picture stays before all begins again. */
const END_MS = 4_000
/** Time to wait for what a command prints, at most. */
const PATIENCE_MS = 90_000

/** What is typed, and what shows that it is done. */
interface Step {
  readonly types: string
  readonly until: RegExp
}

const SERVING: readonly Step[] = [{ types: 'npm start', until: /everything-sse +healthy[^]*MCP +http/ }]
const USING: readonly Step[] = [
  { types: 'trunkline call everything__echo message=hello', until: /Echo: hello[^]*\$ $/ },
  { types: 'trunkline tools sum', until: /tools?, about[^]*\$ $/ },
  { types: 'trunkline ps', until: / tools, [^]* tokens[^]*\$ $/ },
]

interface Frame {
  readonly atMs: number
  readonly rows: readonly string[]
}

const folder = mkdtempSync(join(tmpdir(), 'moving-picture-'))
const tmux = (...args: readonly string[]): string =>
  execFileSync('tmux', ['-f', '/dev/null', '-S', join(folder, 'tmux'), ...args], {
    cwd: ROOT,
    env: { ...process.env, TERM: 'xterm-256color', PS1: '$ ', NO_COLOR: '1', npm_config_loglevel: 'silent' },
  }).toString()

/** The screen of a window, its rows without what is blank at their ends. */
const screen = (window: string): readonly string[] =>
  tmux('capture-pane', '-p', '-t', window)
    .split('\n')
    .slice(0, ROWS)
    .map((row) => row.trimEnd().replaceAll(ROOT, '~/trunkline/'))

/** Types each step in a window, takes its screen all the while. */
const play = async (window: string, steps: readonly Step[]): Promise<readonly Frame[]> => {
  const frames: Frame[] = []
  const look = (): readonly string[] => {
    const rows = screen(window)
    if (rows.join('\n') !== frames.at(-1)?.rows.join('\n')) frames.push({ atMs: performance.now(), rows })
    return rows
  }
  for (const { types, until } of steps) {
    for (const letter of types) {
      tmux('send-keys', '-t', window, '-l', letter)
      await sleep(35)
      look()
    }
    await sleep(300)
    tmux('send-keys', '-t', window, 'Enter')
    const endMs = performance.now() + PATIENCE_MS
    while (!until.test(`${look().join('\n').trimEnd()} `)) {
      if (performance.now() > endMs)
        throw new Error(`"${types}" is not done after ${PATIENCE_MS / 1000} s:\n${look().join('\n')}`)
      await sleep(SAMPLE_MS)
    }
  }
  return frames
}

/** The same with shorter pauses, from `startMs` on. */
const shortened = (frames: readonly Frame[], startMs: number): readonly Frame[] => {
  let atMs = startMs
  return frames.map((frame, index) => {
    atMs += Math.min(MAX_PAUSE_MS, frame.atMs - (frames[index - 1] ?? frame).atMs)
    return { ...frame, atMs }
  })
}

const escaped = (text: string): string => text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;')

/** Each row of text is drawn once for each time in which it stays the same. */
const drawn = (frames: readonly Frame[], totalMs: number): string => {
  const texts: string[] = []
  const rules: string[] = []
  for (let row = 0; row < ROWS; row++) {
    let since = 0
    for (let at = 1; at <= frames.length; at++) {
      const text = frames[since]?.rows[row] ?? ''
      if (at < frames.length && (frames[at]?.rows[row] ?? '') === text) continue
      const [from, to] = [frames[since]?.atMs ?? 0, frames[at]?.atMs ?? totalMs].map((ms) => ((100 * ms) / totalMs).toFixed(2))
      since = at
      if (text === '') continue
      const name = `t${texts.length}`
      const last = to === '100.00' ? '' : `${to}%{opacity:0}`
      rules.push(
        `@keyframes ${name}{0%{opacity:0}${from}%{opacity:1}${last}}.${name}{animation:${name} ${(totalMs / 1000).toFixed(2)}s step-end infinite}`,
      )
      // Without motion only what stands at the end is shown.
      texts.push(`<text class="${name}${last === '' ? '' : ' gone'}" x="16" y="${48 + row * 18}">${escaped(text)}</text>`)
    }
  }
  const [width, height] = [32 + Math.ceil(COLUMNS * 7.85), 60 + ROWS * 18]
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" role="img" aria-label="A terminal: npm start serves six servers, a tool is called, tools are looked for, the state of all servers is shown">
<style>text{font:13px ui-monospace,SFMono-Regular,Menlo,Consolas,monospace;fill:#e6e6e3;white-space:pre}${rules.join('')}
@media (prefers-reduced-motion:reduce){text{animation:none!important}.gone{display:none}}</style>
<rect width="${width}" height="${height}" rx="10" fill="#1b1c1f"/><circle cx="20" cy="18" r="5" fill="#55575e"/><circle cx="38" cy="18" r="5" fill="#55575e"/><circle cx="56" cy="18" r="5" fill="#55575e"/>
${texts.join('\n')}
</svg>
`
}

try {
  const shell = ['sh', '-c', "PS1='$ ' exec sh -i"]
  tmux('new-session', '-d', '-s', 'p', '-x', String(COLUMNS), '-y', String(ROWS), ...shell)
  await sleep(500)
  const serving = shortened(await play('p:0', SERVING), 0)
  const program = join(folder, 'trunkline')
  writeFileSync(program, `#!/bin/sh\nexec ${ROOT}node_modules/.bin/node ${ROOT}scripts/start.ts "$@"\n`, { mode: 0o755 })
  tmux('new-window', '-d', '-t', 'p:1', 'sh', '-c', `PATH=${folder}:$PATH; cd config; PS1='$ ' exec sh -i`)
  await sleep(500)
  const using = shortened(await play('p:1', USING), (serving.at(-1)?.atMs ?? 0) + 2 * MAX_PAUSE_MS)
  const frames = [...serving, ...using]
  const totalMs = (frames.at(-1)?.atMs ?? 0) + END_MS
  const picture = drawn(frames, totalMs)
  if (picture.includes(ROOT)) throw new Error('the picture names a folder of this machine')
  writeFileSync(join(ROOT, 'docs/images/terminal.svg'), picture)
  console.log(`${frames.length} frames, ${(totalMs / 1000).toFixed(1)} s, ${(picture.length / 1024).toFixed(0)} KiB`)
} finally {
  tmux('kill-server')
  rmSync(folder, { recursive: true, force: true })
}
