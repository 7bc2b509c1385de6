/** Tokens that somebody made up, or that were made for something else. */
import { createHmac, generateKeyPairSync } from 'node:crypto'
import type { JsonMap } from '../support/fakes/messages.ts'
import type { Scene } from './team-scene.ts'

/** Seconds. */
const NOW = Math.floor(Date.now() / 1_000)
const stranger = generateKeyPairSync('rsa', { modulusLength: 2048 })
const encode = (value: object): string => Buffer.from(JSON.stringify(value)).toString('base64url')
/** What a good token of alice says, with `more` in its place. */
export const claims = (scene: Scene, more: JsonMap = {}): JsonMap => ({
  iss: scene.issuer.issuer,
  aud: scene.team.trunkline.url.href,
  sub: 'alice',
  groups: ['dev'],
  scope: 'mcp:connect',
  iat: NOW,
  exp: NOW + 600,
  ...more,
})
/** Signed with the key of a public document, as if it were a secret. */
const byPublicKey = (scene: Scene): string => {
  const text = `${encode({ alg: 'HS256', kid: scene.issuer.key.id, typ: 'at+jwt' })}.${encode(claims(scene))}`
  const secret = scene.issuer.key.publicKey.export({ type: 'spki', format: 'pem' })
  return `${text}.${createHmac('sha256', secret).update(text).digest('base64url')}`
}
/** The claims of one token under the signature of another. */
const grafted = async (scene: Scene): Promise<string> => {
  const [header, , signature] = scene.people.alice.token.split('.')
  return [header, encode(claims(scene, { groups: ['sre'] })), signature].join('.')
}
const refreshToken = async (scene: Scene): Promise<string> =>
  (await scene.issuer.userToken('alice', { resource: scene.team.trunkline.url.href })).refresh_token ?? ''

/** By what is wrong with them. */
export const FORGED: readonly (readonly [string, (scene: Scene) => string | Promise<string>])[] = [
  ['a token with alg none', (scene) => `${encode({ alg: 'none', typ: 'at+jwt' })}.${encode(claims(scene))}.`],
  ['a token with the key of a stranger', (scene) => scene.issuer.sign(claims(scene), {}, stranger.privateKey)],
  ['a token with the public key as a secret', byPublicKey],
  ['a token with claims of an sre under the signature of a dev', grafted],
  ['a token with an end that has passed', (scene) => scene.issuer.sign(claims(scene, { exp: NOW - 120 }))],
  [
    'a token with the audience of the desk',
    async (scene) => (await scene.issuer.userToken('alice', { resource: scene.team.desk.url })).access_token,
  ],
  ['a token with another issuer', (scene) => scene.issuer.sign(claims(scene, { iss: 'https://idp.example.com' }))],
  ['a refresh token', refreshToken],
]
