/** Options of `telemetry.otlp`: where traces and their metrics are sent. */
import type { z } from 'zod'
import { DEFAULT_TRACING } from '../../tracing/options.ts'
import type { TracingOptions } from '../../tracing/options.ts'
import { otlpSchema } from '../schema/otlp-schema.ts'
import { child, scalarTexts } from '../syntax/tree.ts'
import type { Tree } from '../syntax/tree.ts'
import { fillFrom } from './fill.ts'

/** `undefined`: nothing is sent. */
export const buildTracing = (otlp: z.output<typeof otlpSchema> | undefined): TracingOptions | undefined => {
  const endpoint = otlp?.endpoint
  if (endpoint === undefined || endpoint === 'none') return undefined
  return fillFrom(otlpSchema, { ...DEFAULT_TRACING, endpoint }, otlp)
}

/** Values of the headers that are sent to a collector. */
export const secretsOfTracing = (telemetry: Tree | undefined): readonly string[] =>
  scalarTexts(child(child(telemetry, 'otlp'), 'headers'))
