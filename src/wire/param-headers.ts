/** `Mcp-*` header values and `x-mcp-header` annotations ([2026-07-28 basic/transports/streamable-http], Custom Headers). */

/** A tool parameter that is mirrored into `Mcp-Param-<name>`; `path` is the chain of `properties` keys leading to it. */
export interface ParamHeader {
  readonly name: string
  readonly path: readonly string[]
  readonly type: 'string' | 'integer' | 'boolean'
}
export const headersFor = (_headers: readonly ParamHeader[], _args: Buffer): Record<string, string> => ({})
