/**
 * Subjects that are not part of this project: nginx if it is in the path, agentgateway in the path or in the folder of `--peers`, and npm packages
 * of that folder, in which `npm install mcp-hub mcp-proxy supergateway` was run.
 */
import { execFile } from 'node:child_process'
import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { UsageError } from './command-line.ts'
import type { Command } from './process.ts'
import { freePort, type StartContext, type Subject } from './subjects.ts'

/** Buffers as large as it takes to give nginx its best. */
const nginxConfig = (folder: string, port: number, origin: string): string => `
daemon off; pid ${folder}/nginx.pid; error_log stderr; worker_processes 1;
events { worker_connections 1024; }
http {
  access_log off; keepalive_requests 1000000000; tcp_nodelay on;
  client_body_temp_path ${folder}/body; proxy_temp_path ${folder}/proxy; fastcgi_temp_path ${folder}/fastcgi;
  uwsgi_temp_path ${folder}/uwsgi; scgi_temp_path ${folder}/scgi;
  proxy_buffer_size 64k; proxy_buffers 32 64k; proxy_busy_buffers_size 128k; proxy_max_temp_file_size 0;
  upstream server { server ${origin}; keepalive 64; keepalive_requests 1000000000; }
  server {
    listen 127.0.0.1:${port};
    location / { proxy_pass http://server; proxy_http_version 1.1; proxy_set_header Connection ""; }
  }
}
`

const nginx: Subject = {
  name: 'nginx',
  what: 'nginx as a plain pass-through, one worker',
  between: [
    ['legacy', 'legacy'],
    ['modern', 'modern'],
  ],
  prefix: '',
  command: async ({ servers: [place], folder }) => {
    const { url } = place!
    const port = await freePort()
    const file = join(folder, 'nginx.conf')
    await writeFile(file, nginxConfig(folder, port, new URL(url).host))
    return { file: 'nginx', args: ['-p', folder, '-c', file], url: `http://127.0.0.1:${port}/mcp` }
  },
}

const script = (dir: string, path: string): string => join(dir, 'node_modules', path)
const shellWords = (words: readonly string[]): string => words.map((word) => `'${word}'`).join(' ')

const mcpHub = (dir: string): Subject => ({
  name: 'mcp-hub',
  what: 'aggregates servers behind one endpoint, as this gateway does; hosts of HTTP+SSE',
  between: [
    ['http-sse', 'legacy'],
    ['http-sse', 'sse-reply'],
    ['http-sse', 'stdio'],
  ],
  prefix: 'a__',
  ssePath: '/mcp',
  command: async ({ servers, folder }) => {
    const config = join(folder, 'hub.json')
    const entries = servers.map(({ kind, url, command: [file, ...args] }, index) => [
      index === 0 ? 'a' : `s${index}`,
      kind === 'stdio' ? { command: file, args } : { url },
    ])
    await writeFile(config, JSON.stringify({ mcpServers: Object.fromEntries(entries) }))
    const port = await freePort()
    const args = [script(dir, 'mcp-hub/dist/cli.js'), '--port', `${port}`, '--config', config]
    return { args, url: `http://127.0.0.1:${port}/mcp`, env: { HOME: folder, XDG_STATE_HOME: folder } }
  },
})

const mcpProxy = (dir: string): Subject => ({
  name: 'mcp-proxy',
  what: 'one server on a pipe, for hosts over HTTP',
  between: [
    ['legacy', 'stdio'],
    ['http-sse', 'stdio'],
  ],
  prefix: '',
  command: async ({ servers: [place] }) => {
    const { command } = place!
    const port = await freePort()
    const options = ['--host', '127.0.0.1', '--port', `${port}`]
    return {
      args: [script(dir, 'mcp-proxy/dist/bin/mcp-proxy.mjs'), ...options, '--', ...command],
      url: `http://127.0.0.1:${port}/mcp`,
    }
  },
})

const supergateway = (dir: string): Subject => {
  const start = async ({ servers: [place], isPiped }: StartContext): Promise<Command> => {
    const { kind, url, command } = place!
    const main = [script(dir, 'supergateway/dist/index.js'), '--logLevel', 'none']
    if (isPiped) return { args: [...main, kind === 'http-sse' ? '--sse' : '--streamableHttp', url], isPiped }
    const port = await freePort()
    const output = ['--outputTransport', 'streamableHttp', '--stateful', '--port', `${port}`]
    return { args: [...main, '--stdio', shellWords(command), ...output], url: `http://127.0.0.1:${port}/mcp` }
  }
  return {
    name: 'supergateway',
    what: 'one server, from a pipe to HTTP or from HTTP to a pipe',
    between: [
      ['legacy', 'stdio'],
      ['stdio', 'legacy'],
    ],
    prefix: '',
    command: start,
  }
}

/** A proxy for MCP servers over HTTP, native. `file`: where the program is. */
const agentgateway = (file: string): Subject => ({
  name: 'agentgateway',
  what: 'a native gateway (Rust), its access log off',
  between: [
    ['legacy', 'legacy'],
    ['modern', 'modern'],
  ],
  prefix: '',
  command: async ({ servers: [place], folder }) => {
    const { url } = place!
    const port = await freePort()
    const config = join(folder, 'agentgateway.json')
    const target = { name: 'a', mcp: { host: url } }
    const route = { backends: [{ mcp: { targets: [target] } }] }
    await writeFile(config, JSON.stringify({ binds: [{ port, listeners: [{ routes: [route] }] }] }))
    return { file, args: ['-f', config], url: `http://127.0.0.1:${port}/mcp`, env: { RUST_LOG: 'error' } }
  },
})

/** The version of a program, which also says that it is there. */
const versionOf = (file: string): Promise<string | undefined> =>
  promisify(execFile)(file, ['--version']).then(
    ({ stdout }) => /\d+\.\d+[\w.-]*/.exec(stdout)?.[0] ?? 'unknown',
    () => undefined,
  )

const hasNginx = (): Promise<boolean> =>
  promisify(execFile)('nginx', ['-v']).then(
    () => true,
    () => false,
  )

export interface Peers {
  readonly subjects: readonly Subject[]
  /** What is not here, and why, by name. */
  readonly absent: Readonly<Record<string, string>>
  readonly versions: Readonly<Record<string, string>>
}

const PEERS = [mcpHub, mcpProxy, supergateway]

/** Everything beside the project's own subjects that this machine has; a folder that was named has at least one of the peers. */
export const findPeers = async (dir: string | undefined): Promise<Peers> => {
  const subjects: Subject[] = []
  const absent: Record<string, string> = {}
  const versions: Record<string, string> = {}
  if (await hasNginx()) {
    subjects.push(nginx)
    const { stderr } = await promisify(execFile)('nginx', ['-v'])
    versions['nginx'] = stderr.trim().replace(/.*\//, '')
  } else absent['nginx'] = 'not installed'
  const { name: native } = agentgateway('')
  const places = [...(dir === undefined ? [] : [join(dir, native), join(dir, 'bin', native)]), native]
  for (const file of places) {
    const version = await versionOf(file)
    if (version === undefined) continue
    versions[native] = version
    subjects.push(agentgateway(file))
    break
  }
  if (versions[native] === undefined) absent[native] = 'neither in the folder of --peers nor in PATH: it is not measured'
  for (const peer of PEERS) {
    const { name } = peer('')
    if (dir === undefined) absent[name] = 'no --peers DIR'
    else {
      const manifest = await readFile(script(dir, `${name}/package.json`), 'utf8').catch(() => undefined)
      if (manifest === undefined) absent[name] = 'not installed in the folder of --peers'
      else {
        versions[name] = (JSON.parse(manifest) as { version: string }).version
        subjects.push(peer(dir))
      }
    }
  }
  if (dir !== undefined && !PEERS.some((peer) => peer('').name in versions)) {
    const names = PEERS.map((peer) => peer('').name).join(' ')
    throw new UsageError(`--peers: ${dir} has none of them; npm install --prefix ${dir} ${names}`)
  }
  return { subjects, absent, versions }
}
