/** The HTML of sign-in and consent pages. Arguments are plain texts. */
import { escaped, page } from './page.ts'

/** How a person proves to be the link's caller: not at all, by a token or code, or by signing in at an issuer. */
export type Proof = 'none' | 'token' | { readonly issuer: string }

/** Asks for consent to a sign-in at a server. */
export const questionPage = (question: {
  readonly id: string
  readonly name: string
  readonly mark: string
  readonly proof: Proof
}): string => {
  const { id, name, mark, proof } = question
  const input =
    proof === 'token'
      ? '<p><label>Your access token for Trunkline, or the code that came with this link:<br><input type="password" name="proof" autocomplete="off" required></label></p>'
      : ''
  return page(
    `Sign in to ${name}`,
    `<p>${typeof proof === 'object' ? `You first sign in at ${escaped(proof.issuer)}, so that it is certain who you are. ` : ''}You will ${typeof proof === 'object' ? 'then ' : ''}be sent to ${escaped(name)}. Trunkline may then use it in your name.</p>
<p>Go on only if you have just asked for this yourself.</p>
<form method="post" action="${escaped(id)}"><input type="hidden" name="mark" value="${escaped(mark)}">${input}<button>Continue</button></form>`,
    'narrow',
  )
}

/** The person has signed in as another principal than the link's. */
export const otherAccountPage = (question: { readonly id: string; readonly issuer: string; readonly mark: string }): string => {
  const { id, issuer, mark } = question
  return page(
    'Another account',
    `<p>This link was made for another account than the one with which you are signed in at ${escaped(issuer)}. Nothing was connected.</p>
<p>If you asked for it yourself, sign in with the account that your application uses. If another person sent you the link, close this window.</p>
<form method="post" action="${escaped(id)}"><input type="hidden" name="mark" value="${escaped(mark)}"><input type="hidden" name="other" value="1"><button>Use another account</button></form>`,
    'narrow',
  )
}

/** Asks for consent to an application, which chose its name itself. */
export const consentPage = (question: {
  readonly name: string
  /** Where the answer is sent: its host name or scheme, and the whole URI. */
  readonly target: string
  readonly redirectUri: string
  /** What the provider is asked for; `undefined`: the request names no scopes. */
  readonly scope: string | undefined
  /** Host name of its metadata document. */
  readonly document: string | undefined
  /** The answer goes to a program on the person's machine. */
  readonly isLocal: boolean
  readonly sealed: string
}): string => {
  const { name, target, redirectUri, scope, document, isLocal, sealed } = question
  // [2026-07-28 basic/authorization/security-considerations], Localhost Redirect URI Risks.
  const claim = isLocal ? ', but any program on this computer can say that it is this application' : ''
  const origin = document === undefined ? '' : ` It is described at <strong>${escaped(document)}</strong>${claim}.`
  const scopes = scope === undefined ? 'It names no scopes.' : `It asks for the scopes <strong>${escaped(scope)}</strong>.`
  return page(
    `Let ${name} in?`,
    `<p>An application that calls itself <strong>${escaped(name)}</strong> asks for access to Trunkline in your name.${origin}</p>
<p>${scopes}</p>
<p>The answer goes to <strong>${escaped(target)}</strong> (${escaped(redirectUri)}). Go on only if you have just begun this yourself, in that application.</p>
<form method="post" action="authorize"><input type="hidden" name="request" value="${escaped(sealed)}"><button name="answer" value="allow">Allow</button> <button name="answer" value="deny">Refuse</button></form>`,
    'narrow',
  )
}

/** A page with one message. */
export const messagePage = (text: string): string => page('Trunkline', `<p>${escaped(text)}</p>`, 'narrow')
