/** F-31: an unexpected error ends the message that caused it, and nothing else. */
import { expect, test, vi } from 'vitest'
import { withinMessage } from '../../../src/host/boundary.ts'
import type { ListenerContext } from '../../../src/host/listener-context.ts'
import { join } from '../../../src/wire/message/payload.ts'
import type { Parts } from '../../../src/wire/message/payload.ts'

test.each([
  ['request', ['{"jsonrpc":"2.0","id":7,"error":{"code":-32603,"message":"internal error"}}']],
  ['notification', []],
  ['response', []],
] as const)('F-31 an error in a %s is reported; a request alone is answered', (kind, answers) => {
  const report = vi.fn()
  const sent: string[] = []
  const broken = new Error('broken')
  // Cast: nothing else is used.
  const unexpected = { report } as unknown as ListenerContext['unexpected']
  const work = (): void => {
    throw broken
  }
  const send = (parts: Parts): void => void sent.push(join(parts).toString())
  withinMessage({ unexpected }, { kind, id: '7', method: 'tools/call' }, work, send)
  expect(report.mock.calls).toEqual([[broken, { method: 'tools/call' }, 'a message failed with an unexpected error']])
  expect(sent).toEqual(answers)
})
