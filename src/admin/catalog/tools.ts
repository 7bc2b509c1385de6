/** Tools of the catalog as plain data. */

/** One tool as `tools --json` prints it. */
export interface ToolRow {
  /** The exposed name. */
  readonly name: string
  /** Key of the server. */
  readonly server: string
  /** Its name at the server. */
  readonly original: string
  /** Estimate: the bytes of the listed definition, divided by 4. */
  readonly tokens: number
  /** The definition as a modern host gets it. */
  readonly definition: ToolDefinition
  /** The definition as it is listed, only where `definition` is printed differently: long numbers lose digits when they are read. */
  readonly text?: string
}

/** A definition as parsed JSON: it may have more members. */
export interface ToolDefinition {
  readonly name: string
  readonly description?: string
  readonly inputSchema?: unknown
}

/** One tool found by a search. */
export interface FoundTool {
  readonly name: string
  readonly server: string
  /** Higher is better; not comparable between searches. */
  readonly score: number
  readonly description: string
}
