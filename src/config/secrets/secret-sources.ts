/** Reads the value of one secret: from a file, a variable, a program or the keyring. */
import { stat } from 'node:fs/promises'
import { runProgram } from './run-program.ts'
import { DEFAULT_SECRET_TIMEOUT_MS } from '../schema/secret-schema.ts'
import type { SecretEntry } from '../schema/secret-schema.ts'
import type { RuntimeEnvironment } from '../runtime-environment.ts'
import { absolutePath, fileContent } from '../syntax/variables.ts'
import type { Scope, Value } from '../syntax/variables.ts'
import { ownValue } from '../../values/own-value.ts'

export interface SecretRequest {
  /** With every variable replaced, including `${name}`. */
  readonly entry: SecretEntry
  readonly scope: Scope
  readonly context: RuntimeEnvironment
  /** Values known so far: they are hidden in errors of programs. */
  readonly known: () => readonly string[]
}

/** The value, or why there is none and what to do. Warnings are added to `warnings`. */
export const readSecret = async (request: SecretRequest, warnings: string[]): Promise<Value> => {
  const { entry, scope } = request
  if (entry.file !== undefined) return readSecretFile(entry.file, request, warnings)
  if (entry.env !== undefined) {
    const text = ownValue(scope.env, entry.env)
    return text === undefined ? { message: `variable ${entry.env} is not set`, remedy: 'set it' } : { text }
  }
  if (entry.exec !== undefined) {
    const [command = '', ...args] = entry.exec
    const path = /[/\\]/.test(command) ? absolutePath(command, scope.folder, scope.home) : command
    return print([path, ...args], 'run it in a terminal', request)
  }
  return readKeyring(request)
}

const readSecretFile = async (path: string, { scope, context }: SecretRequest, warnings: string[]): Promise<Value> => {
  const file = absolutePath(path, scope.folder, scope.home)
  const { mode } = await stat(file).catch(() => ({ mode: 0 }))
  if (context.platform !== 'win32' && (mode & 0o077) !== 0)
    warnings.push(`${file} contains a secret and is open to other users (mode ${(mode & 0o777).toString(8)}); chmod 600 it`)
  return fileContent(path, scope)
}

const readKeyring = (request: SecretRequest): Promise<Value> => {
  const { service = '', account = '' } = request.entry.keyring ?? {}
  const { platform } = request.context
  if (platform === 'win32')
    return Promise.resolve({
      message: 'there is no keyring tool on Windows',
      remedy: 'use exec with your password manager, or env',
    })
  return platform === 'darwin'
    ? print(
        ['security', 'find-generic-password', '-s', service, '-a', account, '-w'],
        `store it: security add-generic-password -s ${service} -a ${account} -w`,
        request,
      )
    : print(
        ['secret-tool', 'lookup', 'service', service, 'account', account],
        `store it: secret-tool store --label=Trunkline service ${service} account ${account}`,
        request,
      )
}

/** The output of a program. */
const print = async (
  argv: readonly string[],
  remedy: string,
  { entry, scope, context, known }: SecretRequest,
): Promise<Value> => {
  const timeoutMs = entry.timeout ?? DEFAULT_SECRET_TIMEOUT_MS
  const printed = await runProgram({ argv, cwd: scope.folder, env: context.env, timeoutMs }, known)
  if ('text' in printed) return printed
  return { message: printed.reason, remedy: printed.isMissing ? 'install it, or write its full path' : remedy }
}
