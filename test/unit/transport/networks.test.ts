/** Networks of IP addresses as options name them. */
import { expect, test } from 'vitest'
import { inNetworks, readNetwork } from '../../../src/transport/networks.ts'

test.each([
  ['10.0.0.0/8', 8, 'ipv4'],
  ['10.0.0.0/0', 0, 'ipv4'],
  ['192.0.2.1', 32, 'ipv4'],
  ['2001:db8::/32', 32, 'ipv6'],
  ['::1', 128, 'ipv6'],
])('%s is a network', (text, bits, family) => {
  expect(readNetwork(text)).toEqual({ address: text.split('/')[0], bits, family })
})

test.each(['', '10.0.0.0/', '10.0.0.0/33', '10.0.0.0/8/8', '10.0.0.0/1e1', '10.0.0/8', '::1/129', 'example.com', '/8'])(
  '%j is not a network',
  (text) => {
    expect(readNetwork(text)).toBeUndefined()
  },
)

test('an address is in one of several networks, or not', () => {
  const isIn = inNetworks(['10.0.0.0/8', 'fd00::/8'].flatMap((text) => readNetwork(text) ?? []))
  expect(['10.1.2.3', 'fd12::1'].map(isIn)).toEqual([true, true])
  expect(['11.1.2.3', 'fe80::1', 'example.com', ''].map(isIn)).toEqual([false, false, false, false])
  expect(inNetworks([])('10.1.2.3')).toBe(false)
})
