/** `serverInfo` of each endpoint (BRIDGING 3.21, 3.22). */
import { expect, test } from 'vitest'
import { EndpointInfos } from '../../../src/host/endpoint-info.ts'

const endpointInfos = new EndpointInfos({ name: 'trunkline', title: 'Trunkline', version: '1' })

test('the merged endpoint has our name, a toolset its own in front of it, made once', () => {
  expect(endpointInfos.of({ server: undefined }).info).toEqual({ name: 'trunkline', title: 'Trunkline', version: '1' })
  const review = endpointInfos.of({ server: undefined, toolset: 'review' })
  expect(review.info).toEqual({ name: 'review-trunkline', title: 'Trunkline: review', version: '1' })
  expect(JSON.parse(Buffer.from(review.json).toString())).toEqual(review.info)
  expect(endpointInfos.of({ server: undefined, toolset: 'review', granted: 'a' })).toBe(review)
})

test('a bridge is named after its server, whatever toolsets its caller has', () => {
  expect(endpointInfos.of({ server: 'docs', toolset: 'a b' }).info.name).toBe('docs-trunkline')
})
