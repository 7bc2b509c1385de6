import { describe, expect, test } from 'vitest'
import { proxyFor } from '../../../src/transport/http1/client/proxy-rules.ts'

const through = (url: string, except: readonly string[] = []): string | undefined =>
  proxyFor(new URL(url), { http: 'http://plain.proxy:1', https: 'http://secure.proxy:2', except })?.host

test('each scheme has its proxy, and none where none is named', () => {
  expect(through('http://mcp.example/')).toBe('plain.proxy:1')
  expect(through('https://mcp.example/')).toBe('secure.proxy:2')
  expect(proxyFor(new URL('https://mcp.example/'), { http: 'http://p:1', https: undefined, except: [] })).toBeUndefined()
})

test.each([
  ['user:50%', 'user', '50%'],
  ['us%er:p%40s%zz%', 'us%er', 'p@s%zz%'],
  ['us%20er:p%25', 'us er', 'p%'],
])('a percent sign that begins no escape is itself, as for curl: %s', (login, user, password) => {
  const proxy = proxyFor(new URL('http://mcp.example/'), { http: `http://${login}@p:1`, https: undefined, except: [] })
  expect([proxy?.username, proxy?.password].map((text) => decodeURIComponent(text ?? ''))).toEqual([user, password])
})

test.each([
  'http://localhost:8080/mcp',
  'http://LOCALHOST/mcp',
  'http://localhost./',
  'http://tool.localhost/',
  'https://127.0.0.1/',
  'http://127.8.9.10:80/',
  'http://[::1]:7420/',
  'http://[::ffff:127.0.0.1]/',
])('this machine is reached directly: %s', (url) => {
  expect(through(url)).toBeUndefined()
})

describe('NO_PROXY', () => {
  test.each([
    ['*', 'https://any.example/'],
    ['example.com', 'https://example.com/'],
    ['example.com', 'https://a.b.example.com/'],
    ['.example.com', 'https://example.com/'],
    ['.example.com', 'https://a.example.com/'],
    ['*.example.com', 'https://a.example.com/'],
    ['example.com', 'https://EXAMPLE.com./'],
    ['example.com:443', 'https://example.com/'],
    ['example.com:8443', 'https://example.com:8443/'],
    ['10.1.2.3', 'http://10.1.2.3:99/'],
    ['10.0.0.0/8', 'http://10.1.2.3/'],
    ['fd00::/8', 'http://[fd12::1]/'],
    ['fd12::1', 'http://[fd12::1]/'],
    ['[fd12::1]:80', 'http://[fd12::1]/'],
  ])('%s covers %s', (entry, url) => {
    expect(through(url, ['other.test', entry])).toBeUndefined()
  })
  test.each([
    ['example.com', 'https://badexample.com/'],
    ['*.example.com', 'https://example.com/'],
    ['example.com:8443', 'https://example.com/'],
    ['10.0.0.0/8', 'http://11.1.2.3/'],
    ['10.0.0.0/99', 'http://10.1.2.3/'],
    ['10.0.0.0/8', 'http://ten.example/'],
    ['com.', 'https://example.org/'],
    ['', 'https://example.org/'],
    [':443', 'https://example.org/'],
  ])('%s does not cover %s', (entry, url) => {
    expect(through(url, [entry])).toBeDefined()
  })
})
