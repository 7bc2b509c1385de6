/** The environment of a process that we start: variables of ours from an allow-list, and those of the configuration (T-13). */

/** Without these a child behind a company's proxy reaches no network. In lower case as well. */
const NETWORK = ['HTTP_PROXY', 'HTTPS_PROXY', 'ALL_PROXY', 'NO_PROXY']
const CERTIFICATES = ['NODE_EXTRA_CA_CERTS', 'SSL_CERT_FILE', 'SSL_CERT_DIR', 'REQUESTS_CA_BUNDLE', 'CURL_CA_BUNDLE']
const NODE_SWITCHES = ['NODE_USE_SYSTEM_CA', 'NODE_USE_ENV_PROXY']
const EVERYWHERE = [...NETWORK, ...NETWORK.map((name) => name.toLowerCase()), ...CERTIFICATES, ...NODE_SWITCHES]
/** Variables that a process inherits unless `env.inherit` names others; documented in docs/configuration.md. */
export const INHERITED = ['PATH', 'HOME', 'LANG', 'LC_*', 'TMPDIR', 'TZ', 'USER', 'SHELL', 'TERM', ...EVERYWHERE]
const INHERITED_ON_WINDOWS = [
  ...EVERYWHERE,
  'PATH',
  'PATHEXT',
  'COMSPEC',
  'SYSTEMROOT',
  'SYSTEMDRIVE',
  'WINDIR',
  'TEMP',
  'TMP',
  'USERNAME',
  'USERPROFILE',
  'HOMEDRIVE',
  'HOMEPATH',
  'APPDATA',
  'LOCALAPPDATA',
  'PROGRAMDATA',
  'PROGRAMFILES',
  'PROGRAMFILES(X86)',
  'PROCESSOR_ARCHITECTURE',
]

/** `inherit` replaces the default list; `declared` wins over everything inherited. Windows compares names without case. */
export const childEnvironment = (
  env: Readonly<Record<string, string | undefined>>,
  inherit: readonly string[] | undefined,
  declared: Readonly<Record<string, string>>,
  platform: NodeJS.Platform = process.platform,
): Readonly<Record<string, string>> => {
  const isWindows = platform === 'win32'
  const fold = (name: string) => (isWindows ? name.toUpperCase() : name)
  const allowed = (inherit ?? (isWindows ? INHERITED_ON_WINDOWS : INHERITED)).map(fold)
  const isAllowed = (name: string) =>
    allowed.some((pattern) => (pattern.endsWith('*') ? name.startsWith(pattern.slice(0, -1)) : name === pattern))
  const declaredNames = new Set(Object.keys(declared).map(fold))
  const inherited = Object.entries(env).filter(
    (pair): pair is [string, string] => pair[1] !== undefined && isAllowed(fold(pair[0])) && !declaredNames.has(fold(pair[0])),
  )
  return { ...Object.fromEntries(inherited), ...declared }
}
