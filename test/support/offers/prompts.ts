/** The prompts every test server offers. */
import { PNG } from './resources.ts'

/** One row: a prompt without `arguments` takes none. */
export interface PromptOffer {
  name: string
  description: string
  arguments?: { name: string; description: string; required: boolean }[]
  render: (args: Record<string, string>) => PromptMessage[]
}

/** The content kinds these prompts use. */
export interface PromptMessage {
  role: 'user'
  content:
    | { type: 'text'; text: string }
    | { type: 'image'; data: string; mimeType: string }
    | { type: 'resource'; resource: { uri: string; mimeType: string; text: string } }
}

const text = (value: string): PromptMessage['content'] => ({ type: 'text', text: value })

/** In the order in which servers list them. */
export const promptOffers: PromptOffer[] = [
  {
    name: 'test_simple_prompt',
    description: 'A prompt without arguments',
    render: () => [{ role: 'user', content: text('This is a simple prompt for testing.') }],
  },
  {
    name: 'test_prompt_with_arguments',
    description: 'A prompt with two arguments',
    arguments: [
      { name: 'arg1', description: 'First test argument', required: true },
      { name: 'arg2', description: 'Second test argument', required: true },
    ],
    render: ({ arg1, arg2 }) => [{ role: 'user', content: text(`Prompt with arguments: arg1='${arg1}', arg2='${arg2}'`) }],
  },
  {
    name: 'test_prompt_with_embedded_resource',
    description: 'A prompt that embeds a resource',
    arguments: [{ name: 'resourceUri', description: 'URI of the resource to embed', required: true }],
    render: ({ resourceUri = '' }) => [
      {
        role: 'user',
        content: {
          type: 'resource',
          resource: { uri: resourceUri, mimeType: 'text/plain', text: 'Embedded resource content for testing.' },
        },
      },
      { role: 'user', content: text('Please process the embedded resource above.') },
    ],
  },
  {
    name: 'test_prompt_with_image',
    description: 'A prompt with a picture',
    render: () => [
      { role: 'user', content: { type: 'image', data: PNG, mimeType: 'image/png' } },
      { role: 'user', content: text('Please analyze the image above.') },
    ],
  },
]

/** The prompt that comes and goes. */
export const extraPrompt: PromptOffer = {
  name: 'extra_prompt',
  description: 'Is not always here',
  render: () => [{ role: 'user', content: text('extra') }],
}
/** One prompt as lists show it. */
export const listedPrompt = ({ name, description, arguments: args }: PromptOffer) => ({
  name,
  description,
  ...(args && { arguments: args }),
})
