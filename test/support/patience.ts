/**
 * Runs before each test file: `vi.waitFor` and `vi.waitUntil` wait nearly as long as the shortest test may run, not vitest's one second,
 * which is nothing on a busy machine. `expect.poll` does so by vitest.config.ts. A test that fakes timers leaves real ones to the next.
 */
import { afterEach, vi } from 'vitest'

type Options = Parameters<typeof vi.waitFor>[1]

const PATIENCE_MS = 15_000
const patient = (options: Options): Options => (typeof options === 'number' ? options : { timeout: PATIENCE_MS, ...options })

const { waitFor, waitUntil } = vi
vi.waitFor = (callback, options) => waitFor(callback, patient(options))
vi.waitUntil = (callback, options) => waitUntil(callback, patient(options))

afterEach(() => void vi.useRealTimers())
