/** The parser of node:http itself, as far as the fuzz targets use it. */
declare module 'node:_http_common' {
  type OnHeadersComplete = (
    major: number,
    minor: number,
    headers: string[] | undefined,
    method: number,
    url: string | undefined,
    statusCode: number | undefined,
    statusMessage: string | undefined,
    isUpgrade: boolean,
    isKeptAlive: boolean,
  ) => number
  export class HTTPParser {
    static readonly REQUEST: number
    static readonly kOnMessageBegin: 0
    static readonly kOnHeaders: 1
    static readonly kOnHeadersComplete: 2
    static readonly kOnBody: 3
    static readonly kOnMessageComplete: 4
    0: () => void
    1: (headers: string[], url: string) => void
    2: OnHeadersComplete
    3: (piece: Buffer) => void
    4: () => void
    initialize(type: number, resource: object): void
    /** How many bytes were read. */
    execute(bytes: Buffer): number | Error
    close(): void
  }
  export const methods: readonly string[]
}
