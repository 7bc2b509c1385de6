/**
 * Drives the command line of the MCP Inspector, as unmodified as users run it: one process per method. It follows all
 * pages of a list by itself, and before a tool call it lists the tools.
 */
import { execFile } from 'node:child_process'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { peerProgram } from './peer-program.ts'
import type { Target } from './processes.ts'

/** The values of `--protocol-era`. */
export type InspectorEra = 'legacy' | 'auto' | 'modern'

/** What to ask; each variant needs what the method needs. */
export type InspectorQuery =
  | { method: 'tools/list' | 'resources/list' | 'resources/templates/list' | 'prompts/list' }
  | { method: 'tools/call'; tool: string; args?: Record<string, unknown> }
  | { method: 'resources/read'; uri: string }
  | { method: 'prompts/get'; prompt: string; args?: Record<string, string> }

/** How one process of the Inspector ended. */
export interface InspectorAnswer {
  /** 0 is well; 1 connection or usage, 5 a tool that failed or is unknown, 6 an error of `--strict` about a schema. */
  exitCode: number
  /** The result of the method as the Inspector understood it; absent when it failed before one arrived. */
  result?: Record<string, unknown>
  /** Everything it complained about; empty when it had nothing to say. */
  complaints: string
}

/**
 * Asks one thing over stdio, Streamable HTTP or, when the URL ends in `/sse`, HTTP+SSE. `tools/list` always runs with
 * `--strict`, which no other method accepts. Its own files go to a temporary home.
 */
export const inspect = async (target: Target, era: InspectorEra, query: InspectorQuery): Promise<InspectorAnswer> => {
  const home = await mkdtemp(join(tmpdir(), 'inspector-'))
  try {
    const { exitCode, stdout, stderr } = await run(home, [
      '--cli',
      ...('url' in target ? [target.url, '--transport', target.url.endsWith('/sse') ? 'sse' : 'http'] : environment(target.env)),
      '--protocol-era',
      era,
      '--format',
      'json',
      '--method',
      query.method,
      ...parameters(query),
      ...('command' in target ? ['--', target.command, ...target.args] : []),
    ])
    const { result } = (stdout === '' ? {} : JSON.parse(stdout)) as { result?: Record<string, unknown> }
    return { exitCode, ...(result && { result }), complaints: stderr }
  } finally {
    await rm(home, { recursive: true })
  }
}

const environment = (env: Record<string, string> = {}) =>
  Object.entries(env).flatMap(([name, value]) => ['-e', `${name}=${value}`])

const parameters = (query: InspectorQuery): string[] => {
  switch (query.method) {
    case 'tools/list':
      return ['--strict']
    case 'tools/call':
      return ['--tool-name', query.tool, '--tool-args-json', JSON.stringify(query.args ?? {})]
    case 'resources/read':
      return ['--uri', query.uri]
    case 'prompts/get':
      return [
        '--prompt-name',
        query.prompt,
        ...Object.entries(query.args ?? {}).flatMap(([name, value]) => ['--prompt-args', `${name}=${value}`]),
      ]
    default:
      return []
  }
}

const run = (home: string, args: string[]): Promise<{ exitCode: number; stdout: string; stderr: string }> => {
  const launcher = peerProgram('inspector/clients/launcher/build/index')
  const env = { ...process.env, HOME: home }
  return new Promise((resolve) => {
    const child = execFile(process.execPath, [launcher, ...args], { env, maxBuffer: 64 * 2 ** 20 }, (_, stdout, stderr) =>
      resolve({ exitCode: child.exitCode ?? -1, stdout, stderr }),
    )
  })
}
