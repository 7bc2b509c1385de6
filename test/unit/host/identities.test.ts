/** `serverInfo` of each endpoint (BRIDGING 3.21, 3.22). */
import { expect, test } from 'vitest'
import { Identities } from '../../../src/host/identities.ts'

const identities = new Identities({ name: 'trunkline', title: 'Trunkline', version: '1' })

test('the merged endpoint has our name, a toolset its own in front of it, made once', () => {
  expect(identities.of({ server: undefined }).info).toEqual({ name: 'trunkline', title: 'Trunkline', version: '1' })
  const review = identities.of({ server: undefined, toolset: 'review' })
  expect(review.info).toEqual({ name: 'review-trunkline', title: 'Trunkline: review', version: '1' })
  expect(JSON.parse(Buffer.from(review.json).toString())).toEqual(review.info)
  expect(identities.of({ server: undefined, toolset: 'review', granted: 'a' })).toBe(review)
})

test('a bridge is named after its server, whatever toolsets its caller has', () => {
  expect(identities.of({ server: 'docs', toolset: 'a b' }).info.name).toBe('docs-trunkline')
})
