/**
 * Hosts for interop tests: unmodified official SDK clients behind one interface. Each kind names the client, the
 * transport and the era it is pinned to; `auto` finds the era by itself.
 */
import { connectSdk1 } from './hosts/sdk1.ts'
import { connectSdk2 } from './hosts/sdk2.ts'
import type { Target } from './processes.ts'

/** An entry of a list, as far as every list agrees. */
export interface Named {
  name: string
}

/** What a call returned, as far as tests look. */
export interface CallResult {
  content: { type: string; text?: string }[]
  isError?: boolean | undefined
}

/** What a caller may attach to a call. */
export interface CallOptions {
  onProgress?: (progress: { progress: number; total?: number | undefined }) => void
  signal?: AbortSignal
}

/** What is completed: an argument of a prompt, or a variable of a template. */
export type CompletionRef = { type: 'ref/prompt'; name: string } | { type: 'ref/resource'; uri: string }

/** One connected client. Every method rejects with the error of the SDK it is made of. */
export interface Host extends AsyncDisposable {
  name: HostKind
  /** The era the client settled on. */
  era: 'legacy' | 'modern'
  /** The revision the client settled on, where it tells: SDK 1 does over Streamable HTTP only. */
  revision: string | undefined
  /** What the server calls itself. */
  serverName: string
  /** The four lists follow every page. */
  listTools(): Promise<Named[]>
  listResources(): Promise<{ uri: string; name: string }[]>
  listTemplates(): Promise<{ uriTemplate: string; name: string }[]>
  listPrompts(): Promise<Named[]>
  callTool(name: string, args?: Record<string, unknown>, options?: CallOptions): Promise<CallResult>
  readResource(uri: string): Promise<{ uri: string; text?: string; blob?: string; mimeType?: string | undefined }[]>
  getPrompt(name: string, args?: Record<string, string>): Promise<{ role: string; content: { type: string; text?: string } }[]>
  complete(ref: CompletionRef, argument: { name: string; value: string }): Promise<string[]>
  /** Calls `listener` whenever the server announces a changed tool list; resolves once that is agreed. */
  onToolsChanged(listener: () => void): Promise<void>
  /** Subscribes to one resource and calls `listener` with the URI of each update; resolves once that is agreed. */
  onResourceUpdated(uri: string, listener: (uri: string) => void): Promise<void>
  close(): Promise<void>
}

/** The name of a row of `hostKinds`. */
export type HostKind = keyof typeof hostKinds

/** Every host of the matrix: which client, over what, in which era. */
export const hostKinds = {
  'sdk1 stdio': { transport: 'stdio', connect: connectSdk1('stdio') },
  'sdk1 sse': { transport: 'sse', connect: connectSdk1('sse') },
  'sdk1 http': { transport: 'http', connect: connectSdk1('http') },
  'sdk2 legacy http': { transport: 'http', connect: connectSdk2('http', 'legacy') },
  'sdk2 modern http': { transport: 'http', connect: connectSdk2('http', { pin: '2026-07-28' }) },
  'sdk2 auto http': { transport: 'http', connect: connectSdk2('http', 'auto') },
  'sdk2 legacy stdio': { transport: 'stdio', connect: connectSdk2('stdio', 'legacy') },
  'sdk2 modern stdio': { transport: 'stdio', connect: connectSdk2('stdio', { pin: '2026-07-28' }) },
  'sdk2 auto stdio': { transport: 'stdio', connect: connectSdk2('stdio', 'auto') },
} as const

/** Connects a host; a stdio host starts the target's command, the others go to its URL. */
export const connectHost = async (kind: HostKind, target: Target): Promise<Host> => {
  const host = await hostKinds[kind].connect(target)
  return { ...host, name: kind, [Symbol.asyncDispose]: host.close }
}
