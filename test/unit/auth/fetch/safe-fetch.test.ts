/** What a stranger's URL may make us reach (T-09, B249). */
import { createServer } from 'node:http'
import type { RequestListener } from 'node:http'
import { describe, expect, test } from 'vitest'
import { AnswerTimeout, SafeFetch } from '../../../../src/auth/fetch/safe-fetch.ts'
import type { Lookup } from '../../../../src/auth/fetch/safe-fetch.ts'
import { listening } from '../../../support/listening.ts'

/** A resolver that answers what it is told to, one answer after the other, and counts. */
const resolver = (...answers: readonly (readonly string[])[]) => {
  let asked = 0
  const lookup: Lookup = (_name, _options, done) => {
    const addresses = answers[Math.min(asked++, answers.length - 1)] ?? []
    done(
      null,
      addresses.map((address) => ({ address, family: address.includes(':') ? 6 : 4 })),
    )
  }
  return { lookup, asked: () => asked }
}

const serve = async (handle: RequestListener) => {
  const seen: string[] = []
  const server = createServer((request, response) => {
    seen.push(request.url ?? '')
    handle(request, response)
  })
  return { ...(await listening(server)), seen }
}

describe('T-09 B249 of a remote server', () => {
  test.each([
    ['the loopback address', '127.0.0.1'],
    ['it in decimal', '2130706433'],
    ['it in hexadecimal', '0x7f000001'],
    ['it in octal', '0177.0.0.1'],
    ['it shortened', '127.1'],
    ['it as IPv4-mapped', '[::ffff:127.0.0.1]'],
    ['it as IPv4-mapped in hexadecimal', '[::ffff:7f00:1]'],
    ['the loopback address of IPv6', '[::1]'],
    ['no address at all', '0.0.0.0'],
    ['that of IPv6', '[::]'],
    ['metadata of a cloud', '169.254.169.254'],
    ['it as IPv4-mapped', '[::ffff:169.254.169.254]'],
    ['it through NAT64', '[64:ff9b::a9fe:a9fe]'],
    ['it through 6to4', '[2002:a9fe:a9fe::1]'],
    ['a private network', '10.0.0.1'],
    ['another', '172.31.255.1'],
    ['a third', '192.168.1.1'],
    ['the network of a provider', '100.64.0.1'],
    ['a unique local address', '[fd00::1]'],
    ['a link-local address', '[fe80::1]'],
    ['multicast', '224.0.0.1'],
    ['the broadcast address', '255.255.255.255'],
  ])('%s is not reached: %s', async (_name, host) => {
    await using safe = new SafeFetch()
    await expect(safe.fetch({ url: `https://${host}/`, reach: 'public' })).rejects.toThrow('is an address of a private network')
  })

  test.each([
    ['a private address', [['10.0.0.1']]],
    ['a private one beside a public one', [['93.184.215.14', '127.0.0.1']]],
    ['the loopback one, mapped', [['::ffff:127.0.0.1']]],
    ['nothing', [[]]],
  ])('a name that means %s is not reached', async (_name, answers) => {
    const { lookup } = resolver(...answers)
    await using safe = new SafeFetch({ lookup })
    await expect(safe.fetch({ url: 'https://as.example.com/', reach: 'public' })).rejects.toThrow('private network')
  })

  test('a name is asked about once for each connection, so that it cannot mean something else afterwards', async () => {
    const { lookup, asked } = resolver(['10.0.0.1'], ['93.184.215.14'])
    await using safe = new SafeFetch({ lookup })
    await expect(safe.fetch({ url: 'https://rebind.example.com/', reach: 'public' })).rejects.toThrow('private network')
    expect(asked()).toBe(1)
  })

  test.each([
    'http://as.example.com/',
    'file:///etc/passwd',
    'ftp://as.example.com/',
    'https://a:b@as.example.com/',
    'nonsense',
    '',
  ])('%j is not fetched', async (url) => {
    const { lookup, asked } = resolver(['93.184.215.14'])
    await using safe = new SafeFetch({ lookup })
    await expect(safe.fetch({ url, reach: 'public' })).rejects.toThrow(Error)
    expect(asked()).toBe(0)
  })
})

describe('T-09 of an issuer within a private network (allow_http)', () => {
  test('http is spoken to at an address that is not public, also by name', async () => {
    await using server = await serve((_, response) => response.end('{}'))
    await using safe = new SafeFetch({ lookup: resolver(['127.0.0.1']).lookup })
    for (const host of ['127.0.0.1', 'idp.internal'])
      expect((await safe.fetch({ url: `http://${host}:${server.port}/keys`, reach: 'intranet' })).status).toBe(200)
    expect(server.seen).toHaveLength(2)
  })

  test.each([
    ['a public address', 'http://93.184.215.14/', ['127.0.0.1']],
    ['a name of a public address', 'http://idp.example.com/', ['93.184.215.14']],
    ['a name of a public address beside a private one', 'http://idp.example.com/', ['10.0.0.7', '93.184.215.14']],
    ['a public address of IPv6', 'http://[2606:2800:21f:cb07:6820:80da:af6b:8b2c]/', ['127.0.0.1']],
  ])('tokens and keys do not go over http to %s', async (_name, url, addresses) => {
    await using safe = new SafeFetch({ lookup: resolver(addresses).lookup })
    await expect(safe.fetch({ url, reach: 'intranet' })).rejects.toThrow('is a public address: only https is spoken to')
  })

  test('without the switch http is not spoken to at all', async () => {
    await using safe = new SafeFetch({ lookup: resolver(['10.0.0.7']).lookup })
    for (const reach of ['private', 'public'] as const)
      await expect(safe.fetch({ url: 'http://10.0.0.7/keys', reach })).rejects.toThrow('only https is spoken to')
  })
})

describe('of a server on this machine', () => {
  test('its own http is spoken to, and no name that only resolves to it', async () => {
    await using server = await serve((_request, response) => response.end('{}'))
    await using safe = new SafeFetch({ lookup: resolver(['127.0.0.1']).lookup })
    expect(await safe.fetch({ url: server.url, reach: 'loopback' })).toEqual({ status: 200, text: '{}' })
    const named = `http://as.example.com:${server.port}`
    await expect(safe.fetch({ url: named, reach: 'loopback' })).rejects.toThrow('only https')
    await expect(safe.fetch({ url: 'https://10.0.0.1/', reach: 'loopback' })).rejects.toThrow('private network')
  })

  test('T-09 no redirect is followed, wherever it leads', async () => {
    await using target = await serve((_request, response) => response.end('{}'))
    await using server = await serve((_request, response) => response.writeHead(307, { location: target.url }).end())
    await using safe = new SafeFetch()
    await expect(safe.fetch({ url: server.url, reach: 'loopback', body: 'code=1' })).rejects.toThrow('redirect')
    expect([server.seen, target.seen]).toEqual([['/'], []])
  })

  test('F-17 an answer has the pause that it asks for', async () => {
    await using server = await serve((_request, response) => response.writeHead(429, { 'retry-after': '7' }).end())
    await using safe = new SafeFetch()
    expect(await safe.fetch({ url: server.url, reach: 'loopback' })).toEqual({ status: 429, text: '', retryAfterMs: 7_000 })
  })

  test('an answer beyond the limit is not read to its end', async () => {
    await using server = await serve((_request, response) => response.end(Buffer.alloc(1_001)))
    await using safe = new SafeFetch({ maxBytes: 1_000 })
    await expect(safe.fetch({ url: server.url, reach: 'loopback' })).rejects.toThrow('more than 1000 bytes')
  })

  test('a server that never answers is given up', async () => {
    await using server = await serve(() => undefined)
    await using safe = new SafeFetch({ timeoutMs: 50 })
    await expect(safe.fetch({ url: server.url, reach: 'loopback' })).rejects.toThrow(
      new AnswerTimeout(`${new URL(server.url).origin}: no answer within 0.05 s`),
    )
  })
})
