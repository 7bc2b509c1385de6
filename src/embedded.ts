/**
 * What a program that embeds the gateway passes to `createGateway`. Options are checked; layers and the log are wrapped, so that a mistake
 * in a layer costs one call with a message that names the layer, and a mistake in the log costs one line.
 */
import { valueName } from './config/read/given.ts'
import { suggest } from './config/syntax/nearest-key.ts'
import type { Problem } from './config/syntax/problems.ts'
import type { Log } from './values/log.ts'
import type { Redactor } from './redactor.ts'
import type { Layer, Outcome } from './rpc/call.ts'
import { isList, jsonObject, memberOf } from './values/json-object.ts'

const LEVELS = ['debug', 'info', 'warn', 'error'] as const
const OPTIONS = ['configuration', 'listen', 'layers', 'log']
/** The place of an option in messages. */
const PLACE = 'options'

/** Everything that is wrong with the options, apart from the content of the configuration. Callers in plain JavaScript may pass anything. */
export const optionProblems = (given: unknown): readonly Problem[] => {
  const problems: Problem[] = []
  const refuse = (path: string, message: string, remedy = ''): void => {
    problems.push({ place: PLACE, path, message, remedy })
  }
  const expect = (isValid: boolean, path: string, expected: string, value: unknown): void => {
    if (!isValid) refuse(path, `expected ${expected}, got ${valueName(value)}`)
  }
  const expectFunction = (value: unknown, path: string): void => expect(typeof value === 'function', path, 'a function', value)
  const options = jsonObject(given)
  if (options === undefined) refuse('', 'expected an object', 'pass { configuration: … }')
  const { listen, layers, log } = options ?? {}
  for (const key of Object.keys(options ?? {}))
    if (!OPTIONS.includes(key)) refuse('', `unknown option ${JSON.stringify(key)}`, suggest(key, OPTIONS, 'known options'))
  expect(listen === undefined || typeof listen === 'boolean', 'listen', 'true or false', listen)
  if (isList(layers)) for (const [at, layer] of layers.entries()) expectFunction(layer, `layers[${at}]`)
  else expect(layers === undefined, 'layers', 'a list of functions', layers)
  if (log !== undefined) for (const level of LEVELS) expectFunction(memberOf(log, level), `log.${level}`)
  return problems
}

/** Problems of `{ files }`. */
export const fileProblems = (files: readonly unknown[]): readonly Problem[] => {
  const at = (path: string, message: string, remedy: string): Problem => ({ place: 'configuration', path, message, remedy })
  if (files.length === 0) return [at('files', 'expected at least one path', 'name the file')]
  return files.flatMap((file, index) =>
    typeof file === 'string' ? [] : [at(`files[${index}]`, `expected a path, got ${valueName(file)}`, '')],
  )
}

/**
 * The layers of a program, outermost first. Results reach them whole: a result that is relayed while it is being received could neither
 * be read nor left unused.
 */
export const guardLayers = (layers: readonly Layer[]): readonly Layer[] =>
  layers.length === 0 ? [] : [takesWhole, ...layers.map(guarded)]

const takesWhole: Layer = (inner) => (call) => inner(call.takesStreams === true ? { ...call, takesStreams: false } : call)

const guarded =
  (layer: Layer, at: number): Layer =>
  (inner) => {
    const handle = layer(inner)
    if (typeof handle !== 'function')
      throw new TypeError(`layers[${at}] returned ${valueName(handle)}: a layer gets the next handler and returns a handler`)
    return async (call) => {
      const outcome = await handle(call)
      if (isOutcome(outcome)) return outcome
      const remedy = 'return what the next handler returns, or complete(Payload.of({ … }))'
      throw new TypeError(`layers[${at}] answered ${call.method} with ${outcomeName(outcome)}: ${remedy}`)
    }
  }

const KINDS: Readonly<Record<Outcome['kind'], true>> = { complete: true, input_required: true, task: true }

const isOutcome = (value: unknown): boolean =>
  Object.hasOwn(KINDS, String(memberOf(value, 'kind'))) && typeof memberOf(memberOf(value, 'result'), 'parts') === 'function'

const outcomeName = (value: unknown): string => {
  const result = memberOf(value, 'result')
  return result === undefined ? valueName(value) : `${valueName(result)} as result`
}

/** A log without secrets. An error that the program's log throws is ignored. */
export const guardLog = (log: Log, redactor: Redactor): Log => {
  const write = (level: keyof Log, facts: object, message: string): void => {
    try {
      log[level](redactor.hideIn(facts), redactor.hide(message))
    } catch {
      // There is no other place to report it.
    }
  }
  return {
    debug: (facts, message) => write('debug', facts, message),
    info: (facts, message) => write('info', facts, message),
    warn: (facts, message) => write('warn', facts, message),
    error: (facts, message) => write('error', facts, message),
  }
}
