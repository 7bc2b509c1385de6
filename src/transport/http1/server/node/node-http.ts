/**
 * node:http and node:https, loaded on first use. An import would also load the WebSocket client of Node, which is not used: some 20 ms of
 * CPU and 10 MiB at every start.
 *
 * Gain: 5 ms of CPU and 3 MiB in place of 57 ms and 13 MiB (bench/notes.md).
 */
import type Http from 'node:http'
import type Https from 'node:https'

export const nodeHttp = (): typeof Http => process.getBuiltinModule('node:http')

export const nodeHttps = (): typeof Https => process.getBuiltinModule('node:https')
