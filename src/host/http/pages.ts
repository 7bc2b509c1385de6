/** The HTML pages of sign-ins, without scripts and external resources. */
import { escaped, page } from './page.ts'

/** Asks for consent. All texts are plain. */
export const questionPage = (question: {
  readonly id: string
  readonly name: string
  readonly mark: string
  /** The page asks for the person's access token. */
  readonly asksProof: boolean
}): string => {
  const { id, name, mark, asksProof } = question
  const proof = asksProof
    ? '<p><label>Your access token for Trunkline, or the code that came with this link:<br><input type="password" name="proof" autocomplete="off" required></label></p>'
    : ''
  return page(
    `Sign in to ${name}`,
    `<p>You will be sent to ${escaped(name)}. Trunkline may then use it in your name.</p>
<p>Go on only if you have just asked for this yourself.</p>
<form method="post" action="${escaped(id)}"><input type="hidden" name="mark" value="${escaped(mark)}">${proof}<button>Continue</button></form>`,
    'narrow',
  )
}

/** A page with one message. */
export const notePage = (text: string): string => page('Trunkline', `<p>${escaped(text)}</p>`, 'narrow')
