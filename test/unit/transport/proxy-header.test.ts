import { describe, expect, test } from 'vitest'
import { clientBehind } from '../../../src/transport/http1/server/connection/forwarded.ts'
import { readProxyHeader } from '../../../src/transport/http1/server/connection/proxy-header.ts'
import { isProxyEntry, trustedProxies } from '../../../src/transport/http1/server/connection/trusted-proxies.ts'

const SIGNATURE = '0d0a0d0a000d0a515549540a'
/** Version and command, family, addresses and ports in hex, then more. */
const binary = (command: string, family: string, body: string): Buffer => {
  const size = (body.length / 2).toString(16).padStart(4, '0')
  return Buffer.from(`${SIGNATURE}${command}${family}${size}${body}`, 'hex')
}
const V4 = 'c0000201c6336401000101bb'
const V6 = `${'20010db8'.padEnd(32, '0')}${'20010db8'.padEnd(31, '0')}1000101bb`

describe('a header of the PROXY protocol', () => {
  test.each([
    ['TCP4', Buffer.from('PROXY TCP4 192.0.2.1 198.51.100.1 1 443\r\nGET /'), 41, '192.0.2.1'],
    ['TCP6', Buffer.from('PROXY TCP6 2001:db8::1 2001:db8::2 1 443\r\n'), 42, '2001:db8::1'],
    ['UNKNOWN', Buffer.from('PROXY UNKNOWN ffff::1 whatever\r\nx'), 32, undefined],
    ['version 2, IPv4', binary('21', '11', V4), 28, '192.0.2.1'],
    ['version 2, IPv4, with more behind', binary('21', '11', `${V4}040001aa`), 32, '192.0.2.1'],
    ['version 2, IPv6', binary('21', '21', V6), 52, '2001:db8::'],
    ['version 2, LOCAL (a health check)', binary('20', '11', V4), 28, undefined],
    ['version 2, of a unix socket', binary('21', '31', '00'.repeat(216)), 232, undefined],
  ])('%s', (_, bytes, length, client) => {
    expect(readProxyHeader(bytes)).toEqual({ length, client })
    // Cut anywhere it is not decided yet.
    for (let cut = 0; cut < length; cut++) expect(readProxyHeader(bytes.subarray(0, cut)), String(cut)).toBe('more')
  })

  test.each([
    ['HTTP', Buffer.from('POST /mcp HTTP/1.1\r\n')],
    ['an address that is none', Buffer.from('PROXY TCP4 192.0.2.300 198.51.100.1 1 443\r\n')],
    ['an address of the other family', Buffer.from('PROXY TCP4 ::1 ::1 1 443\r\n')],
    ['a line without an end', Buffer.from(`PROXY TCP4 ${'1'.repeat(200)}`)],
    ['another family', Buffer.from('PROXY SCTP 192.0.2.1 198.51.100.1 1 443\r\n')],
    ['no ports', Buffer.from('PROXY TCP4 192.0.2.1 198.51.100.1\r\n')],
    ['version 3', binary('31', '11', V4)],
    ['an unknown command', binary('22', '11', V4)],
    ['addresses that are too short', binary('21', '11', 'c0000201')],
    ['more than 4 KiB', binary('21', '11', '00'.repeat(5_000))],
  ])('%s is none', (_, bytes) => {
    expect(readProxyHeader(bytes)).toBe('none')
  })
})

describe('the client behind trusted proxies', () => {
  const trusted = trustedProxies(['10.0.0.0/8', 'loopback', '2001:db8::/32'])!
  const by = (value: string | undefined, peer = '10.0.0.1', header: 'forwarded' | 'x-forwarded-for' = 'x-forwarded-for') =>
    clientBehind(peer, value, header, trusted)

  test('is the last address that no trusted proxy has; what stands before is not believed', () => {
    expect(by('203.0.113.9')).toBe('203.0.113.9')
    expect(by('1.1.1.1, 203.0.113.9, 10.0.0.7')).toBe('203.0.113.9')
    expect(by('203.0.113.9:4711')).toBe('203.0.113.9')
    expect(by('"[2001:4860::8]:80"')).toBe('2001:4860::8')
    expect(by('10.0.0.9')).toBe('10.0.0.9')
  })
  test('is the peer where the peer is not trusted, or says nothing that can be read', () => {
    expect(by('203.0.113.9', '192.0.2.7')).toBe('192.0.2.7')
    expect(by(undefined)).toBe('10.0.0.1')
    expect(by('nonsense')).toBe('10.0.0.1')
    expect(by('1.1.1.1, unknown, 10.0.0.7')).toBe('10.0.0.7')
  })
  test('is read from Forwarded where that is the header (RFC 7239)', () => {
    expect(by('for=192.0.2.43, For="[2001:4860::17]:4711";proto=https;by=10.0.0.1', '::1', 'forwarded')).toBe('2001:4860::17')
    expect(by('for=_hidden', '::1', 'forwarded')).toBe('::1')
  })
  test('entries are addresses, networks, loopback and unix; mapped addresses are what they map', () => {
    expect(['10.0.0.1', '10.0.0.0/8', '::1/128', 'loopback', 'unix'].map(isProxyEntry)).not.toContain(false)
    expect(['', 'x', '10.0.0.0/33', '10.0.0.0/8/8', '10.0.0', '::1/129', '10.0.0.0/'].map(isProxyEntry)).not.toContain(true)
    expect(trusted('::ffff:10.1.2.3')).toBe(true)
    expect(trusted('127.9.9.9')).toBe(true)
    expect(trusted(undefined)).toBe(false)
    expect(trustedProxies(['unix'])?.(undefined)).toBe(true)
    expect(trustedProxies([])).toBeUndefined()
  })
})
