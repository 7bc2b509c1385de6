/**
 * Limits of hosts: what they refuse, drop or shorten. Each limit has its source and date, since hosts change without notice.
 * Documentation and source code are better evidence than a user's report.
 */

/** Source of a limit. */
type Evidence = 'documented' | 'source' | 'reported'

/** `breaks`: the tool, or all tools, cannot be used. `degrades`: the host shortens or omits texts or tools. */
export type Consequence = 'breaks' | 'degrades'

export interface Limit {
  readonly most: number
  readonly consequence: Consequence
  /** What the host does then, as one clause. */
  readonly effect: string
  readonly evidence: Evidence
  /** The source, with its date or version. */
  readonly from: string
}

export interface HostLimits {
  /** Product name. */
  readonly label: string
  /** What the host puts before a tool's name. `server`: the name of this gateway in the host's configuration. */
  readonly namePrefix: (server: string) => string
  /** Characters of a name, with that prefix. */
  readonly name: Limit
  /** Tools of all servers of the host together. */
  readonly tools?: Limit
  /** Bytes of one tool's description. */
  readonly description?: Limit
  /** Bytes of the gateway's instructions. */
  readonly instructions?: Limit
  /** Consequence of a name with other characters than letters, digits, `_` and `-`. */
  readonly characters: Omit<Limit, 'most'>
}

const none = () => ''
const doubled = (server: string) => `mcp__${server}__`

const REFUSED_BY_MODELS: HostLimits['characters'] = {
  consequence: 'degrades',
  effect: 'the model may refuse the request',
  evidence: 'reported',
  from: 'a rule of model APIs: github/copilot-cli#2581 (2026-04-08)',
}

/** By the argument of `check --host`. */
export const HOST_LIMITS: Readonly<Record<string, HostLimits>> = {
  'claude-desktop': {
    label: 'Claude Desktop',
    namePrefix: none,
    name: {
      most: 64,
      consequence: 'breaks',
      effect: 'one such name and no tool of the server is shown',
      evidence: 'reported',
      from: 'evoila/meho#2745 (2026-08-02), loomle/loomle#168 (1.9659.2)',
    },
    characters: {
      consequence: 'breaks',
      effect: 'one such name and no tool of the server is shown',
      evidence: 'reported',
      from: 'evoila/meho#2745 (2026-08-02), anthropics/claude-code#68850 (2026-06-16)',
    },
  },
  'claude-code': {
    label: 'Claude Code',
    namePrefix: doubled,
    name: {
      most: 128,
      consequence: 'breaks',
      effect: 'the tool is left out',
      evidence: 'documented',
      from: 'Claude Code documentation, MCP (2026-10); 64 until 2026-01, anthropics/claude-code#22276',
    },
    description: {
      most: 2_048,
      consequence: 'degrades',
      effect: 'the rest is cut',
      evidence: 'documented',
      from: 'Claude Code documentation, MCP (2026-08)',
    },
    instructions: {
      most: 2_048,
      consequence: 'degrades',
      effect: 'the rest is cut',
      evidence: 'documented',
      from: 'Claude Code documentation, MCP; measured with 2.1.285',
    },
    characters: {
      consequence: 'breaks',
      effect: 'the model refuses every request',
      evidence: 'reported',
      from: 'microsoft/wassette#56 (2025-08-03)',
    },
  },
  cursor: {
    label: 'Cursor',
    namePrefix: (server) => server,
    name: {
      most: 59,
      consequence: 'breaks',
      effect: 'the tool is filtered out',
      evidence: 'reported',
      from: 'ComposioHQ/composio#2788 (2026-02-27), awslabs/mcp#1283 (1.6.14)',
    },
    tools: {
      most: 40,
      consequence: 'degrades',
      effect: 'it warns, and tools may not reach the model',
      evidence: 'reported',
      from: 'mcptrove.com, the Cursor tool limit (2026-06-17)',
    },
    characters: {
      consequence: 'degrades',
      effect: 'the tool may not reach the model',
      evidence: 'reported',
      from: 'a rule of model APIs: github/copilot-cli#2581 (2026-04-08)',
    },
  },
  vscode: {
    label: 'VS Code',
    namePrefix: (server) => `mcp_${server}_`.slice(0, 18),
    name: {
      most: 64,
      consequence: 'degrades',
      effect: 'the end of the name is cut',
      evidence: 'source',
      from: 'microsoft/vscode mcpTypes.ts, McpToolName; microsoft/vscode#243602',
    },
    tools: {
      most: 128,
      consequence: 'breaks',
      effect: 'requests fail',
      evidence: 'reported',
      from: 'microsoft/vscode#337428 (1.138.0, 2026-09-23)',
    },
    characters: {
      consequence: 'degrades',
      effect: 'they become _, with a warning',
      evidence: 'reported',
      from: 'microsoft/vscode#308463, github/copilot-cli#2581 (2026-04-08)',
    },
  },
  windsurf: {
    label: 'Windsurf',
    namePrefix: none,
    name: {
      most: 64,
      consequence: 'breaks',
      effect: 'the model refuses the request',
      evidence: 'reported',
      from: 'a limit of model APIs: microsoft/mcp#842 (2025-10-16)',
    },
    tools: {
      most: 100,
      consequence: 'breaks',
      effect: 'no more can be enabled',
      evidence: 'documented',
      from: 'Windsurf documentation, Cascade MCP (cited 2026-06-16)',
    },
    characters: REFUSED_BY_MODELS,
  },
  codex: {
    label: 'Codex',
    namePrefix: doubled,
    name: {
      most: 64,
      consequence: 'degrades',
      effect: 'the end of the name becomes a hash',
      evidence: 'source',
      from: 'openai/codex mcp_connection_manager.rs, MAX_TOOL_NAME_LENGTH',
    },
    characters: {
      consequence: 'breaks',
      effect: 'the session fails',
      evidence: 'reported',
      from: 'openai/codex#8174',
    },
  },
  gemini: {
    label: 'Gemini CLI',
    namePrefix: (server) => `mcp_${server}_`,
    name: {
      most: 63,
      consequence: 'degrades',
      effect: 'its middle is cut out',
      evidence: 'source',
      from: 'google-gemini/gemini-cli mcp-tool.ts, generateValidName; zuplo.com compatibility (2026-07-31)',
    },
    characters: {
      consequence: 'degrades',
      effect: 'they become _',
      evidence: 'source',
      from: 'google-gemini/gemini-cli mcp-tool.ts, generateValidName',
    },
  },
  'copilot-cli': {
    label: 'Copilot CLI',
    namePrefix: (server) => `${server}-`,
    name: {
      most: 64,
      consequence: 'breaks',
      effect: 'some models refuse every request',
      evidence: 'reported',
      from: 'microsoft/mcp#842 (2025-10-16)',
    },
    characters: {
      consequence: 'breaks',
      effect: 'every request fails',
      evidence: 'reported',
      from: 'github/copilot-cli#2581 (2026-04-08)',
    },
  },
  zed: {
    label: 'Zed',
    namePrefix: none,
    name: {
      most: 64,
      consequence: 'degrades',
      effect: 'the end of the name is cut',
      evidence: 'source',
      from: 'zed-industries/zed, agent, MAX_TOOL_NAME_LENGTH',
    },
    characters: REFUSED_BY_MODELS,
  },
  goose: {
    label: 'Goose',
    namePrefix: (server) => `${server}__`,
    name: {
      most: 64,
      consequence: 'breaks',
      effect: 'some models refuse every request',
      evidence: 'reported',
      from: 'a limit of model APIs: microsoft/mcp#842 (2025-10-16)',
    },
    tools: {
      most: 50,
      consequence: 'degrades',
      effect: 'versions before 2026-08 tell the model that there are too many',
      evidence: 'reported',
      from: 'aaif-goose/goose#10841 (2026-07-31), aaif-goose/goose#9910',
    },
    characters: {
      consequence: 'breaks',
      effect: 'some models refuse every request',
      evidence: 'reported',
      from: 'a rule of model APIs: github/copilot-cli#2581 (2026-04-08)',
    },
  },
}
