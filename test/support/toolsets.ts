/** Toolsets as a configuration makes them, for tests that start behind it. */
import { LOCAL } from '../../src/auth/identity.ts'
import type { Identity } from '../../src/auth/identity.ts'
import type { Choice, ToolsetOptions } from '../../src/catalog/view/toolset.ts'

/** One entry of `toolsets` that says no more than it must. */
export const toolsetOf = (choice: Partial<Choice>, more: Partial<ToolsetOptions> = {}): ToolsetOptions => ({
  name: 'some',
  place: 'trunkline.yaml:1:1',
  description: undefined,
  choices: [{ servers: ['*'], tools: undefined, resources: undefined, prompts: undefined, where: {}, ...choice }],
  always: [],
  override: {},
  confirm: [],
  discovery: 'full',
  budget: undefined,
  rate: undefined,
  ...more,
})

/** Somebody with a credential. */
export const identityOf = (principal: string, more: Partial<Identity> = {}): Identity => ({ ...LOCAL, principal, ...more })
