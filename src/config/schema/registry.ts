/** `registry`: where `trunkline add NAME` looks up servers. */
import { z } from 'zod'
import { durationField, field, httpUrl, sizeField } from './kinds.ts'

export interface RegistryOptions {
  /** Without a slash at the end; `/v0.1/servers/…` is added. */
  readonly url: string
  readonly timeoutMs: number
  readonly maxAnswerBytes: number
}

export const DEFAULT_REGISTRY: RegistryOptions = {
  url: 'https://registry.modelcontextprotocol.io',
  timeoutMs: 10_000,
  maxAnswerBytes: 1024 * 1024,
}

export const registrySchema = z.strictObject({
  url: field(httpUrl, 'Its URL, without the path of the API.', DEFAULT_REGISTRY.url),
  timeout: durationField('Time for a request and its whole answer.', DEFAULT_REGISTRY.timeoutMs),
  max_answer: sizeField('Size of one answer.', DEFAULT_REGISTRY.maxAnswerBytes),
})

/** `written`: the section of the file. An invalid section means the defaults: the file is validated elsewhere. */
export const registryOptions = (written: unknown): RegistryOptions => {
  const parsed = registrySchema.partial().safeParse(written ?? {})
  if (!parsed.success) return DEFAULT_REGISTRY
  const { url, timeout, max_answer: maxAnswer } = parsed.data
  return {
    url: url === undefined ? DEFAULT_REGISTRY.url : String(url).replace(/\/$/, ''),
    timeoutMs: timeout ?? DEFAULT_REGISTRY.timeoutMs,
    maxAnswerBytes: maxAnswer ?? DEFAULT_REGISTRY.maxAnswerBytes,
  }
}
