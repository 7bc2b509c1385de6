/** The cost of a call in a process that is measured alone, for the sections that compare one process with itself. */
import { cpuMicros, processTree } from './cpu.ts'
import type { Host } from './load.ts'
import { TOOLS, type ToolName } from './payload.ts'

export const IN_FLIGHT = 32

interface Measured {
  readonly pid: number
  readonly host: Host
}

/** A tool by its exposed name, which answers a text of this size. */
interface Asked {
  readonly tool: string
  readonly size: ToolName
}

/** CPU of a call, µs, over calls begun for `forMs`, or over so many `calls` if they are fewer; rejects when a reply was bad. */
export const callMicros = async (
  { host, pid }: Measured,
  { tool, size }: Asked,
  forMs: number,
  calls?: number,
): Promise<number> => {
  const { used, latencies, bad, firstBad } = await host.burst({
    ask: { tool, size: TOOLS[size] },
    inFlight: IN_FLIGHT,
    forMs,
    meter: () => cpuMicros(processTree(pid)),
    ...(calls === undefined ? {} : { calls }),
  })
  if (bad > 0) throw new Error(`${bad} of ${latencies.length} replies of ${tool} were bad\n${firstBad}`)
  return used / latencies.length
}
