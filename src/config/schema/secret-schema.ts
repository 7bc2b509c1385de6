/** What may stand in `secrets`: where values come from that belong in no file of the configuration. */
import { z } from 'zod'
import { argument, duration, field, filledText } from './kinds.ts'
import { formatDuration } from './units.ts'

/** What a secret, or a provider of many, is called by. */
export const SECRET_NAME = /^[\w.-]+$/

/** Programs may wait for a person: a password manager that is locked. */
export const DEFAULT_SECRET_TIMEOUT_MS = 30_000

export const secretSchema = z.strictObject({
  file: field(
    filledText,
    'A file that holds the value; the line end at its end does not count. Only you should be able to read it.',
  ),
  env: field(filledText, 'A variable of the environment.'),
  exec: field(
    z.array(argument),
    'A program that prints the value, and its arguments: started without a shell, in the folder of the file.',
  ),
  keyring: field(
    z.strictObject({
      service: field(filledText, 'What the entry belongs to.'),
      account: field(filledText, 'Which of them it is.'),
    }),
    'An entry of the keyring of the desktop, read with `secret-tool` (Linux) or `security` (macOS).',
  ),
  cache: field(duration, 'With `exec` or `keyring`: a reload within this time does not ask again. Left out: every reload asks.'),
  timeout: field(duration, 'With `exec` or `keyring`: how long the answer may take.', formatDuration(DEFAULT_SECRET_TIMEOUT_MS)),
})

export type SecretEntry = z.output<typeof secretSchema>
