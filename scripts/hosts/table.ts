/** The real hosts that `npm run hosts` runs: packages of npm, each with its own command that shows its servers, and a turn with a model. */

/** Files below home and project, and variables, that a host needs before it does anything. */
export interface Setting {
  readonly env?: Readonly<Record<string, string>>
  readonly home?: Readonly<Record<string, string>>
}

export interface Turn extends Setting {
  readonly args: readonly string[]
}

export interface RealHost {
  /** By the word of `trunkline connect`. */
  readonly host: string
  readonly package: string
  readonly version: string
  readonly bin: string
  readonly setting?: (project: string) => Setting
  /** Its own command that shows its servers, and what it prints of one that it reached; of most it does reach them. */
  readonly list: readonly string[] | undefined
  readonly connected: RegExp | undefined
  /** That command reads its file and asks no server. */
  readonly readsOnly?: true
  /** Its command is run before the turn, as it fails by itself right after one. */
  readonly isListedFirst?: true
  /** What is run once before, where its files say which model it has. */
  readonly prepare?: (model: string) => readonly string[]
  /** A turn in which the model at this URL calls a tool of ours. */
  readonly turn: (model: string) => Turn
}

const PROMPT = 'Call the echo tool.'

export const REAL_HOSTS: readonly RealHost[] = [
  {
    host: 'claude-code',
    package: '@anthropic-ai/claude-code',
    version: '2.1.197',
    bin: 'claude',
    list: ['mcp', 'list'],
    connected: /trunkline: .* ✔ Connected/,
    turn: (model) => ({
      args: ['-p', PROMPT, '--allowedTools', 'mcp__trunkline'],
      env: { ANTHROPIC_BASE_URL: model, ANTHROPIC_API_KEY: 'none', CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: '1' },
    }),
  },
  {
    host: 'codex',
    package: '@openai/codex',
    version: '0.169.0',
    bin: 'codex',
    list: ['mcp', 'list'],
    connected: /trunkline .* enabled/,
    readsOnly: true,
    turn: (model) => ({
      args: [
        'exec',
        '--skip-git-repo-check',
        '--dangerously-bypass-approvals-and-sandbox',
        '-c',
        'model="fake"',
        '-c',
        'model_provider="fake"',
        '-c',
        `model_providers.fake={name="fake",base_url="${model}/v1",wire_api="responses"}`,
        PROMPT,
      ],
    }),
  },
  {
    host: 'gemini',
    package: '@google/gemini-cli',
    version: '0.61.0',
    bin: 'gemini',
    setting: (project) => ({
      home: {
        '.gemini/trustedFolders.json': JSON.stringify({ [project]: 'TRUST_FOLDER' }),
        '.gemini/settings.json': '{"security":{"auth":{"selectedType":"gemini-api-key"}}}',
      },
    }),
    list: ['mcp', 'list'],
    connected: /✓ trunkline: .* - Connected/,
    turn: (model) => ({
      args: ['-p', PROMPT, '--yolo', '-m', 'gemini-2.5-flash'],
      env: { GOOGLE_GEMINI_BASE_URL: model, GEMINI_API_KEY: 'none' },
    }),
  },
  {
    host: 'qwen',
    package: '@qwen-code/qwen-code',
    version: '0.15.10',
    bin: 'qwen',
    list: ['mcp', 'list'],
    connected: /✓\S* trunkline: .* - Connected/,
    turn: (model) => ({
      args: ['-p', PROMPT, '--yolo', '--auth-type', 'openai'],
      env: { OPENAI_BASE_URL: `${model}/v1`, OPENAI_API_KEY: 'none', OPENAI_MODEL: 'fake' },
    }),
  },
  {
    host: 'copilot-cli',
    package: '@github/copilot',
    version: '1.0.102',
    bin: 'copilot',
    list: ['mcp', 'get', 'trunkline'],
    connected: /Status: Enabled/,
    readsOnly: true,
    turn: (model) => ({
      args: ['-p', PROMPT, '--allow-all-tools'],
      env: { COPILOT_OFFLINE: 'true', COPILOT_PROVIDER_BASE_URL: `${model}/v1`, COPILOT_MODEL: 'fake' },
    }),
  },
  {
    host: 'opencode',
    package: 'opencode-ai',
    version: '1.18.33',
    bin: 'opencode',
    list: ['mcp', 'list'],
    connected: /✓ trunkline .*connected/,
    isListedFirst: true,
    turn: (model) => ({
      args: ['run', '-m', 'fake/fake', PROMPT],
      env: {
        OPENCODE_CONFIG_CONTENT: JSON.stringify({
          provider: {
            fake: {
              npm: '@ai-sdk/openai-compatible',
              options: { baseURL: `${model}/v1`, apiKey: 'none' },
              models: { fake: { tool_call: true } },
            },
          },
        }),
      },
    }),
  },
  {
    host: 'cline',
    package: 'cline',
    version: '3.0.65',
    bin: 'cline',
    // It has no command that shows its servers: what it was listed tells.
    list: undefined,
    connected: undefined,
    prepare: (model) => ['auth', '-p', 'openai-compatible', '-k', 'none', '-m', 'fake', '-b', `${model}/v1`],
    turn: () => ({ args: ['-P', 'openai-compatible', '-m', 'fake', PROMPT] }),
  },
]
