/** A fake host on a pair of streams: one message per line. */
import type { Duplex } from 'node:stream'
import type { HostOptions } from '../fake-host.ts'
import type { TestGateway } from '../gateway.ts'
import { BaseHost } from './base-host.ts'
import { Journal } from './journal.ts'

export interface HostStreams {
  /** What the host writes. */
  readonly input: Duplex
  /** What the gateway writes. */
  readonly output: Duplex
}

export class PipeHost extends BaseHost {
  /** Every line that came, as it stands. */
  readonly lines = new Journal<string>()
  readonly #streams: HostStreams

  constructor(era: 'legacy' | 'modern', streams: HostStreams, options: HostOptions = {}) {
    super(era, options)
    this.#streams = streams
    const rest: Buffer[] = []
    streams.output.on('close', () => this.broken())
    streams.output.on('data', (chunk: Buffer) => {
      let from = 0
      for (let end = chunk.indexOf(10); end !== -1; end = chunk.indexOf(10, from)) {
        const line = Buffer.concat([...rest.splice(0), chunk.subarray(from, end)]).toString()
        from = end + 1
        this.lines.push(line)
        this.take(line)
      }
      if (from < chunk.length) rest.push(chunk.subarray(from))
    })
  }

  async start(): Promise<this> {
    await (this.era === 'legacy' ? this.initialize() : this.discover())
    return this
  }

  /** Writes one line. */
  write(text: string | Buffer): void {
    this.#streams.input.write(text)
    this.#streams.input.write('\n')
  }

  /** The host goes away. */
  leave(): void {
    this.#streams.input.end()
  }

  protected carry(text: string): void {
    this.write(text)
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.leave()
  }
}

export const connectPipe = async (era: 'legacy' | 'modern', gateway: TestGateway, options?: HostOptions): Promise<PipeHost> =>
  new PipeHost(era, gateway.openPipe(options?.identity, options), options).start()
