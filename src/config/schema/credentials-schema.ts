/** `servers.<key>.credentials`: how we authenticate to a server, by one method at a time. */
import { z } from 'zod'
import { choice, field, filledText, flag, headerValue, httpUrl, texts } from './kinds.ts'

const PRIVATE_NETWORK = 'Its authorization server may be in a private network; else only public addresses are allowed.'
const algorithm = field(choice('ES256', 'ES384', 'RS256', 'PS256', 'EdDSA'), 'Algorithm of that key.', 'ES256')

const oauthSchema = z.strictObject({
  per_user: field(flag, '`true`: every caller signs in separately. `false`: the operator signs in for all.', false),
  issuer: field(httpUrl, 'The authorization server, in place of the one that the server names.'),
  scopes: field(texts, 'Scopes to request. Scopes that the server names or asks for later are not added.'),
  offline_access: field(
    flag,
    '`false`: `offline_access` is not added to the scopes where the authorization server lists it.',
    true,
  ),
  client_id: field(
    filledText,
    'A client that you registered. Without it Trunkline uses its client metadata document, or registers itself.',
  ),
  client_secret: field(filledText, 'Its secret, if it has one.'),
  client_metadata_url: field(
    httpUrl,
    'Client metadata document of Trunkline, if Trunkline does not serve it: an https URL with a path.',
  ),
  private_network: field(flag, PRIVATE_NETWORK, false),
})

const clientSchema = z.strictObject({
  client_id: filledText.meta({ description: 'Client id of Trunkline.' }),
  client_secret: field(filledText, 'Its secret.'),
  private_key: field(
    filledText,
    'In place of the secret: a private key in PEM, which signs an assertion for every token request (`private_key_jwt`).',
  ),
  algorithm,
  scopes: field(texts, 'Scopes to request, in place of those that the server names.'),
  issuer: field(httpUrl, 'The authorization server, where the MCP server does not name it.'),
  private_network: field(flag, PRIVATE_NETWORK, false),
})

const exchangeSchema = z.strictObject({
  issuer: httpUrl.meta({ description: 'The authorization server that issued the token of the caller, and that exchanges it.' }),
  client_id: filledText.meta({ description: 'Client id of Trunkline at the issuer.' }),
  client_secret: field(filledText, 'Its secret.'),
  private_key: field(filledText, 'In place of the secret: a private key in PEM.'),
  algorithm,
  audience: field(filledText, 'The audience of the new token, in place of the URL of the server.'),
  scopes: field(texts, 'Scopes to request.'),
  private_network: field(flag, PRIVATE_NETWORK, false),
})

export const credentialsSchema = z.strictObject({
  bearer: field(headerValue, 'A token, sent as `Authorization: Bearer …`.'),
  headers: field(z.record(z.string(), headerValue), 'Headers with secrets.'),
  oauth: field(oauthSchema, 'A person signs in with OAuth.'),
  client_credentials: field(clientSchema, 'Trunkline itself signs in with OAuth, as a client.'),
  exchange: field(exchangeSchema, 'The token of the caller is exchanged for one of the server (RFC 8693); needs `auth.oauth`.'),
})

export type Credentials = z.output<typeof credentialsSchema>
