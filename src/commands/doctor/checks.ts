/** The checks of `trunkline doctor`. A new check is a function in `CHECKS`. */
import { constants, stat } from 'node:fs/promises'
import { connect, createServer } from 'node:net'
import { asError } from '../../values/as-error.ts'
import { namedProxy } from '../../config/build/servers/proxies.ts'
import type { ServerOptions } from '../../downstream/options.ts'
import { HOSTS } from '../../host-files/hosts.ts'
import { readOurFile } from '../../host-files/our-file.ts'
import { HttpClients } from '../../transport/http1/client/http-clients.ts'
import { proxyFor } from '../../transport/http1/client/proxy-rules.ts'
import { portHolder } from '../terminal/port-holder.ts'
import type { Check, Finding } from './finding.ts'
import { ask, ASK_MS, findIn, isAllowed } from './programs.ts'

const SKEW_MS = 60_000
const CONNECT_MS = 2_000
const GROUP_AND_OTHERS = 0o077
/** The oldest Node that packages of servers support today; older ones end with syntax errors. */
const OLDEST_NODE_OF_SERVERS = 20
const INSTALL: Readonly<Record<string, string>> = {
  uvx: 'install uv (docs.astral.sh/uv)',
  uv: 'install uv (docs.astral.sh/uv)',
  npx: 'install Node.js (nodejs.org)',
  node: 'install Node.js (nodejs.org)',
  docker: 'install Docker (docs.docker.com)',
  podman: 'install Podman (podman.io)',
  bunx: 'install Bun (bun.sh)',
  deno: 'install Deno (deno.com)',
}

const trouble = (text: string, remedy: string): Finding => ({ level: 'trouble', text, remedy })
const advice = (text: string, remedy: string): Finding => ({ level: 'advice', text, remedy })

/** Reports that there is no server; other checks are useless then. */
const noServer: Check = async ({ configuration, invocation: { command, isFound, files } }) => {
  if (configuration.servers.length > 0) return []
  const where = isFound
    ? `no server is enabled in ${files[0]}`
    : 'there is no configuration, and no usable server in the files of hosts'
  const add = command('add', 'NAME')
  return [advice(where, `add one: ${add} URL, or ${add} -- COMMAND`)]
}

/** Without a configuration: servers, and whole files, of hosts that cannot be used; the others are served. */
const hostFiles: Check = ({ discovered }) => {
  const { found = [], leftOut = new Map<string, string>() } = discovered ?? {}
  const texts = [
    ...found.flatMap(({ host, problems }) => problems.map((text) => `${HOSTS[host].label}: ${text}`)),
    ...[...leftOut].map(([key, reason]) => `${key}: ${reason}`),
  ]
  return Promise.resolve(texts.map((text) => trouble(text, 'correct the file of the host; until then this is not served')))
}

/** Calls `look` for every server that a command starts. */
const eachLaunched =
  (
    look: (
      launched: { readonly key: string; readonly launch: NonNullable<ServerOptions['launch']> },
      examined: Parameters<Check>[0],
    ) => Promise<readonly Finding[]>,
  ): Check =>
  async (examined) => {
    const all = examined.configuration.servers.map(async ({ key, launch }) =>
      launch === undefined ? [] : look({ key, launch }, examined),
    )
    return (await Promise.all(all)).flat()
  }

/** Finds commands that do not exist, or that only the login shell finds. */
const commands = eachLaunched(async ({ key, launch }, { shellPath, desktopPath, own, invocation }) => {
  const { command, env } = launch
  const found = await findIn(command, env['PATH'])
  const fixed = (path: string): Pick<Finding, 'fix' | 'remedy'> =>
    own.has(key)
      ? {
          remedy: `write command: ${path} (${invocation.command('doctor', '--fix')} does)`,
          fix: { kind: 'command', server: key, path },
        }
      : { remedy: `write its full path where the server is configured: ${path}` }
  if (found === undefined) {
    const inShell = await findIn(command, shellPath)
    return inShell === undefined
      ? [trouble(`${key}: ${command} is not found`, INSTALL[command] ?? `install it, or correct servers.${key}.command`)]
      : [{ level: 'trouble', text: `${key}: ${command} is on the PATH of the login shell only`, ...fixed(inShell) }]
  }
  if (desktopPath === undefined || (await findIn(command, desktopPath)) !== undefined) return []
  const text = `${key}: ${command} is not on the PATH of programs that are started from the desktop (Claude Desktop, editors)`
  return [{ level: 'advice', text, ...fixed(found) }]
})

/** Finds programs that the system refuses to start because they were downloaded. */
const quarantine = eachLaunched(async ({ key, launch }, { invocation: { context } }) => {
  const file = await findIn(launch.command, launch.env['PATH'])
  if (file === undefined) return []
  if (context.platform === 'darwin' && (await ask('xattr', ['-p', 'com.apple.quarantine', file], context.env)) !== undefined)
    return [
      trouble(`${key}: macOS holds ${file} in quarantine`, `if its origin is trusted: xattr -d com.apple.quarantine ${file}`),
    ]
  if (context.platform === 'win32' && (await isAllowed(`${file}:Zone.Identifier`, constants.R_OK)))
    return [trouble(`${key}: Windows marks ${file} as downloaded`, `if its origin is trusted: Unblock-File '${file}'`)]
  return []
})

/** Finds programs that are installed but do not work. */
const runtimes = eachLaunched(async ({ key, launch }, { invocation: { context } }) => {
  const { command, env } = launch
  const name = command.replace(/^.*[/\\]/, '')
  if (name === 'docker' || name === 'podman') {
    const file = await findIn(command, env['PATH'])
    const isAnswered = file === undefined || (await ask(file, ['info'], { ...context.env, ...env })) !== undefined
    return isAnswered ? [] : [trouble(`${key}: ${name} is installed, but does not answer`, `start it (${name} info says why)`)]
  }
  if (name !== 'node' && name !== 'npx') return []
  const node = await findIn('node', env['PATH'])
  const version = node === undefined ? undefined : await ask(node, ['--version'], { ...context.env, ...env })
  const major = Number(/^v(\d+)\./.exec(version ?? '')?.[1] ?? OLDEST_NODE_OF_SERVERS)
  if (major >= OLDEST_NODE_OF_SERVERS) return []
  return [
    advice(
      `${key}: runs with Node.js ${version?.trim()} (${node}), which is too old for most servers`,
      `install Node.js ${OLDEST_NODE_OF_SERVERS} or later, or name a newer one: servers.${key}.env.PATH`,
    ),
  ]
})

/** Finds addresses that another program uses. */
const ports: Check = async ({ configuration, isRunning, invocation }) => {
  if (isRunning) return []
  const { addresses } = configuration.host
  const taken = await Promise.all(addresses.map(async (address) => ((await isFree(address)) ? [] : [address])))
  return taken.flat().map(({ host, port }) => {
    const holder = portHolder(port)
    return trouble(
      `${host}:${port} is in use${holder === undefined ? '' : ` by ${holder}`}`,
      `end it, or choose another address: ${invocation.command('up', '--listen')} HOST:PORT`,
    )
  })
}

const isFree = ({ host, port }: { readonly host: string; readonly port: number }): Promise<boolean> =>
  new Promise((resolve) => {
    const server = createServer()
    server.once('error', (error: NodeJS.ErrnoException) => resolve(error.code !== 'EADDRINUSE'))
    server.listen(port, host, () => server.close(() => resolve(true)))
  })

/** Finds proxies of the environment that are not HTTP proxies, or refuse connections. */
const proxies: Check = async ({ invocation: { context } }) => {
  const found = await Promise.all(
    (['HTTP_PROXY', 'HTTPS_PROXY'] as const).map(async (name): Promise<readonly Finding[]> => {
      const proxy = namedProxy(context.env, name)
      if (proxy === undefined) return []
      const { variable, url } = proxy
      if (url === null) return [trouble(`${variable} is not the URL of an HTTP proxy`, 'set it to http://HOST:PORT, or unset it')]
      if (await acceptsConnections(url)) return []
      return [trouble(`${variable}: the proxy ${url.host} accepts no connection`, `start it, correct ${variable}, or unset it`)]
    }),
  )
  return found.flat()
}

const acceptsConnections = (url: URL): Promise<boolean> =>
  new Promise((resolve) => {
    const port = Number(url.port === '' ? (url.protocol === 'https:' ? 443 : 80) : url.port)
    const socket = connect({ host: url.hostname.replace(/^\[|\]$/g, ''), port })
    const end = (isOpen: boolean): void => {
      socket.destroy()
      resolve(isOpen)
    }
    socket.setTimeout(CONNECT_MS, () => end(false))
    socket.once('connect', () => end(true))
    socket.once('error', () => end(false))
  })

/** Finds a file of certificate authorities that Node cannot read: Node warns once and continues without it. */
const authorities: Check = async ({ invocation: { context } }) => {
  const file = context.env['NODE_EXTRA_CA_CERTS']
  if (!file || (await isAllowed(file, constants.R_OK))) return []
  return [trouble(`NODE_EXTRA_CA_CERTS names ${file}, which cannot be read`, 'correct the path, or unset it')]
}

/** Finds servers whose URLs cannot be reached, with the HTTP client of calls; and a clock that is wrong. */
const urls: Check = async ({ configuration }) => {
  const clients = new HttpClients()
  const asked = configuration.servers.filter(({ url, launch }) => url !== undefined && launch === undefined)
  const found = await Promise.all(asked.map((server) => askServer(server, clients)))
  await clients.close()
  return found.flat()
}

const askServer = async (server: ServerOptions, clients: HttpClients): Promise<readonly Finding[]> => {
  const { key, url } = server
  if (url === undefined) return []
  try {
    const date = Date.parse(await dateOf(url, server, clients))
    const skewMs = Math.abs(Date.now() - date)
    const text = `the clock differs from that of ${url.host} by ${Math.round(skewMs / 1_000)} s: tokens may count as expired`
    return skewMs > SKEW_MS ? [advice(text, 'set the clock by NTP')] : []
  } catch (error) {
    const { message } = asError(error)
    const text = `${key}: ${url.origin} cannot be reached: ${message}`
    if (/CERT|SELF_SIGNED|UNABLE_TO_VERIFY/.test(message))
      return [trouble(text, `name the authority of its certificate: servers.${key}.tls.ca, or NODE_EXTRA_CA_CERTS`)]
    const proxy = proxyFor(url, server.proxies)
    return [trouble(text, `check servers.${key}.url${proxy === undefined ? '' : ', the proxy'} and the network`)]
  }
}

/** The `Date` header of the answer, whatever its status; empty if there is none. */
const dateOf = (url: URL, server: ServerOptions, clients: HttpClients): Promise<string> =>
  new Promise((resolve, reject) => {
    const headers = { accept: 'application/json, text/event-stream' }
    const timer = setTimeout(() => reject(new Error(`no answer within ${ASK_MS / 1_000} s`)), ASK_MS)
    const settled = (): void => clearTimeout(timer)
    const exchange = clients.for(url, server).request(
      { method: 'GET', url, headers, headersTimeoutMs: ASK_MS },
      {
        onHead: ({ headers: answered }) => {
          settled()
          resolve(answered['date'] ?? '')
          exchange.abort()
        },
        onData: () => undefined,
        onEnd: settled,
        onError: (failure) => {
          settled()
          reject(failure)
        },
      },
    )
  })

/** Finds a file of secrets that other users of the machine can read. */
const secrets: Check = async ({ configuration, invocation: { context } }) => {
  const [file] = configuration.files
  if (file === undefined || context.platform === 'win32') return []
  const ours = await readOurFile(file, context).catch(() => undefined)
  if (ours?.namesEnvFile !== true) return []
  const mode = await stat(ours.envFile).then(
    (found) => found.mode & 0o777,
    () => 0,
  )
  if ((mode & GROUP_AND_OTHERS) === 0) return []
  const finding = advice(`${ours.envFile} contains secrets, and other users can read it`, `chmod 600 ${ours.envFile}`)
  return [{ ...finding, fix: { kind: 'mode', file: ours.envFile } }]
}

export const CHECKS: readonly Check[] = [
  noServer,
  hostFiles,
  commands,
  quarantine,
  runtimes,
  ports,
  proxies,
  authorities,
  urls,
  secrets,
]
