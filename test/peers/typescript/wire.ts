/** The command loop of a host (test/peers/README.md): one JSON command per line on stdin, one answer per line on stdout. */
import type { Readable } from 'node:stream'

export type Json = Record<string, unknown>
export interface ConnectCommand {
  readonly transport: 'stdio' | 'sse' | 'http'
  /** Declares sampling, elicitation and roots; else nothing. */
  readonly capable: boolean
  readonly command: string
  readonly args: string[]
  readonly url: string
}

export interface CallCommand {
  readonly name: string
  readonly arguments?: Json
  readonly progress?: boolean
  readonly timeoutMs?: number
}

/** One host on one SDK; a method that its SDK does not have rejects with `UNSUPPORTED`. */
export interface PeerHost {
  readonly learnt: Json
  list(of: string): Promise<unknown[]>
  call(command: CallCommand, onProgress: (progress: object) => void, signal: AbortSignal): Promise<unknown>
  read(uri: string): Promise<unknown>
  subscribe(uri: string): Promise<unknown>
  unsubscribe(uri: string): Promise<unknown>
  prompt(name: string, args?: Record<string, string>): Promise<unknown>
  complete(ref: Json, argument: { name: string; value: string }): Promise<unknown>
  level(level: string): Promise<unknown>
  ping(): Promise<unknown>
  close(): Promise<void>
}

export const UNSUPPORTED = new Error('unsupported')
export const FORM = { action: 'accept' as const, content: { answer: 'yes' } }
export const SAMPLE = { role: 'assistant' as const, content: { type: 'text' as const, text: 'sampled' }, model: 'peer-model' }
export const ROOTS = { roots: [{ uri: 'file:///peer/root', name: 'peer' }] }

/** Calls `onLine` with each line. Node's readline ends lines at U+2028, too, which JSON may hold. */
export const readLines = (stream: Readable, onLine: (line: string) => void): void => {
  let rest = ''
  stream.setEncoding('utf8').on('data', (chunk: string) => {
    const lines = (rest + chunk).split('\n')
    rest = lines.pop() ?? ''
    for (const line of lines) onLine(line)
  })
}

const emit = (message: object): void => void process.stdout.write(`${JSON.stringify(message)}\n`)
export const emitEvent = (event: string, params: unknown, more: object = {}): void => emit({ event, params, ...more })

const failure = (error: unknown): object => {
  if (error === UNSUPPORTED) return { kind: 'unsupported' }
  const { code, message, data, name } = error as { code?: unknown; message: string; data?: unknown; name: string }
  return typeof code === 'number' ? { code, message, ...(data !== undefined && { data }) } : { kind: name, message }
}

/** Serves commands until stdin ends. */
export const serve = (connect: (command: ConnectCommand) => Promise<PeerHost>): void => {
  let host: PeerHost | undefined
  const running = new Map<number, AbortController>()
  const verbs: Record<string, (command: never, controller: AbortController, id: number) => Promise<unknown>> = {
    connect: async (command: ConnectCommand) => (host = await connect(command)).learnt,
    close: () => host!.close(),
    cancel: async ({ call }: { call: number }) => running.get(call)?.abort(),
    list: ({ of }: { of: string }) => host!.list(of),
    call: (command: CallCommand, { signal }, id) =>
      host!.call(command, (params) => emitEvent('progress', params, { call: id }), signal),
    read: ({ uri }: { uri: string }) => host!.read(uri),
    subscribe: ({ uri }: { uri: string }) => host!.subscribe(uri),
    unsubscribe: ({ uri }: { uri: string }) => host!.unsubscribe(uri),
    prompt: ({ name, ...rest }: { name: string; arguments?: Record<string, string> }) => host!.prompt(name, rest.arguments),
    complete: ({ ref, argument }: { ref: Json; argument: { name: string; value: string } }) => host!.complete(ref, argument),
    level: ({ level }: { level: string }) => host!.level(level),
    ping: () => host!.ping(),
  }
  readLines(process.stdin, (line) => {
    const { id, do: verb, ...command } = JSON.parse(line) as { id: number; do: string }
    const controller = new AbortController()
    running.set(id, controller)
    Promise.resolve()
      .then(() => verbs[verb]!(command as never, controller, id))
      .then(
        (result) => emit({ id, result: result ?? null }),
        (error: unknown) => emit({ id, error: controller.signal.aborted ? { kind: 'cancelled' } : failure(error) }),
      )
      .finally(() => running.delete(id))
  })
}
