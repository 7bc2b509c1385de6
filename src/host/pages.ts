/** The few pages a person sees. Nothing in them moves, and nothing comes from elsewhere. */

const STYLE =
  'body{font:16px/1.5 system-ui,sans-serif;max-width:32rem;margin:15vh auto;padding:0 1rem;color:#222;background:#fff}button{font:inherit;padding:.5rem 1.25rem}'

/** Asks for consent. All texts are plain. */
export const questionPage = (question: {
  readonly id: string
  readonly name: string
  readonly principal: string
  readonly mark: string
}): string => {
  const { id, name, principal, mark } = question
  return page(
    `Sign in to ${name}`,
    `<p>You will be sent to ${escaped(name)}. Trunkline may then use it for <b>${escaped(principal)}</b>, and for nobody else.</p>
<p>Go on only if you have just asked for this yourself.</p>
<form method="post" action="/connect/${escaped(id)}"><input type="hidden" name="mark" value="${escaped(mark)}"><button>Continue</button></form>`,
  )
}

/** Says one thing. */
export const notePage = (text: string): string => page('Trunkline', `<p>${escaped(text)}</p>`)

const page = (title: string, body: string): string =>
  `<!doctype html><html lang="en"><meta charset="utf-8"><title>${escaped(title)}</title><style>${STYLE}</style><h1>${escaped(title)}</h1>${body}</html>\n`

const escaped = (text: string): string => text.replaceAll(/[&<>"']/g, (character) => `&#${character.charCodeAt(0)};`)
