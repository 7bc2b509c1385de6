/** `secrets`: the sources of values that are not in the configuration files. */
import { z } from 'zod'
import { argument, duration, field, filledText } from './kinds.ts'
import { formatDuration } from './units.ts'

/** Name of a secret, or of a provider of many. */
export const SECRET_NAME = /^[\w.-]+$/

/** A program may wait for a person to unlock a password manager. */
export const DEFAULT_SECRET_TIMEOUT_MS = 30_000

export const secretSchema = z.strictObject({
  file: field(filledText, 'A file with the value; its last line end is removed. Only you should be able to read it.'),
  env: field(filledText, 'A variable of the environment.'),
  exec: field(
    z.array(argument),
    'A program that prints the value, and its arguments: started without a shell, in the folder of the file.',
  ),
  keyring: field(
    z.strictObject({
      service: field(filledText, 'Service of the entry.'),
      account: field(filledText, 'Account of the entry.'),
    }),
    'An entry of the keyring of the desktop, read with `secret-tool` (Linux) or `security` (macOS).',
  ),
  cache: field(duration, 'With `exec` or `keyring`: how long the value is kept. Without it, every reload reads it again.'),
  timeout: field(duration, 'With `exec` or `keyring`: how long reading may take.', formatDuration(DEFAULT_SECRET_TIMEOUT_MS)),
})

export type SecretEntry = z.output<typeof secretSchema>
