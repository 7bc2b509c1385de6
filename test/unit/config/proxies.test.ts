import { describe, expect, test } from 'vitest'
import { diffConfigurations } from '../../../src/config/change/difference.ts'
import { makeCertificates } from '../../support/certificates.ts'
import { yaml } from './workspace.ts'

const REMOTE = 'servers:\n  a: { url: https://mcp.example/mcp }\n'

describe('proxies of the environment', () => {
  test('upper and lower case are read, lower case first, and https falls back to http', async () => {
    await using files = await yaml(REMOTE)
    const rules = async (env: Record<string, string>) => {
      const { servers, proxies } = await files.load(undefined, { env })
      expect(servers[0]?.proxies).toEqual(proxies)
      return proxies
    }
    expect(await rules({ HTTP_PROXY: 'http://u:p%40ss@p:1', HTTPS_PROXY: 'http://q:2', NO_PROXY: 'A.example, .b,*' })).toEqual({
      http: 'http://u:p%40ss@p:1/',
      https: 'http://q:2/',
      except: ['a.example', '.b', '*'],
    })
    expect(await rules({ HTTP_PROXY: 'http://upper:1', http_proxy: 'lower:1', no_proxy: 'x y' })).toEqual({
      http: 'http://lower:1/',
      https: 'http://lower:1/',
      except: ['x', 'y'],
    })
    expect(await rules({ https_proxy: '', HTTPS_PROXY: 'http://p:1' })).toMatchObject({ https: undefined })
  })

  test('T-14 a password in one is a secret, as it is written and as it is sent', async () => {
    await using files = await yaml(REMOTE)
    const { secrets } = await files.load(undefined, { env: { HTTPS_PROXY: 'http://user:p%40ssword@p:1' } })
    expect(secrets).toEqual(expect.arrayContaining(['p%40ssword', 'p@ssword']))
  })

  test.each(['socks5://p:1080', 'http://', 'ftp://p'])('%s is not used, and told', async (value) => {
    await using files = await yaml(REMOTE)
    const { proxies, warnings } = await files.load(undefined, { env: { HTTPS_PROXY: value } })
    expect(proxies.https).toBeUndefined()
    expect(warnings).toEqual([expect.stringMatching(/^HTTPS_PROXY is not used: .*http:\/\/proxy/)])
  })
})

describe('proxy of one server', () => {
  test('wins over the environment, none too, and a change restarts the server', async () => {
    const env = { HTTPS_PROXY: 'http://everywhere:1', NO_PROXY: 'mcp.example' }
    const load = async (line: string) => {
      await using files = await yaml(`servers:\n  a: { url: https://mcp.example/mcp${line} }\n`)
      return await files.load(undefined, { env })
    }
    const [inherits, own, none] = [
      await load(''),
      await load(', proxy: "http://u:secret-word@own:2"'),
      await load(', proxy: none'),
    ]
    expect(own.servers[0]?.proxies).toEqual({
      http: 'http://u:secret-word@own:2/',
      https: 'http://u:secret-word@own:2/',
      except: [],
    })
    expect(own.secrets).toContain('secret-word')
    expect(none.servers[0]?.proxies).toEqual({ http: undefined, https: undefined, except: [] })
    for (const [before, after] of [
      [inherits, own],
      [own, none],
    ] as const)
      expect(diffConfigurations(before, after).changed).toEqual(['a'])
  })

  test.each([
    ['{ command: x, proxy: none }', /:2:20 servers\.a\.proxy: "proxy" without url has no effect/],
    ['{ url: "http://127.0.0.1:1/", proxy: "http://p:1" }', /servers\.a\.proxy: .*this machine is never reached through a proxy/],
    ['{ url: "https://x.test/", proxy: "socks5://p:1" }', /expected none, or a URL such as http:\/\/proxy.*SOCKS/],
    ['{ url: "http://x.test/", tls: { server_name: y.test } }', /servers\.a\.tls: "tls" has no effect on http:/],
    ['{ url: "https://x.test/", tls: { cert: c.pem } }', /"cert" and "key" belong together/],
    ['{ url: "https://x.test/", tls: { ca: nowhere.pem } }', /servers\.a\.tls\.ca: .*nowhere\.pem cannot be used: ENOENT/],
    ['{ url: "https://x.test/", tls: { ca: trunkline.yaml } }', /servers\.a\.tls\.ca: .*cannot be used.*PEM/],
  ])('%s is an error', async (entry, message) => {
    await using files = await yaml(`servers:\n  a: ${entry}\n`)
    expect((await files.errors()).join('\n')).toMatch(message)
  })
})

describe('tls of one server', () => {
  test('its files are read from the folder of the configuration, watched, and the key is a secret', async () => {
    using pem = makeCertificates('x.test')
    await using files = await yaml(
      'servers:\n  a: { url: "https://y.test/", tls: { ca: ca.pem, cert: pem/c.pem, key: pem/k.pem, server_name: x.test } }\n',
    )
    await files.write('ca.pem', pem.text('ca'))
    await files.write('pem/c.pem', pem.text('client'))
    await files.write('pem/k.pem', pem.text('client.key'))
    const before = await files.load()
    expect(before.servers[0]?.tls).toEqual({
      ca: pem.text('ca'),
      cert: pem.text('client'),
      key: pem.text('client.key'),
      serverName: 'x.test',
    })
    expect(before.files).toEqual(expect.arrayContaining(['ca.pem', 'pem/c.pem', 'pem/k.pem'].map((name) => files.path(name))))
    expect(before.secrets).toContain(pem.text('client.key'))
    await files.write('ca.pem', pem.text('server'))
    expect(diffConfigurations(before, await files.load()).changed).toEqual(['a'])
    await files.write('pem/k.pem', pem.text('server.key'))
    expect((await files.errors()).join('\n')).toMatch(/servers\.a\.tls\.key: the key does not belong to the certificate/)
  })
})

test('PEM files may begin with a byte order mark', async () => {
  using pem = makeCertificates('x.test')
  await using files = await yaml('servers:\n  a: { url: "https://y.test/", tls: { ca: ca.pem, cert: c.pem, key: k.pem } }\n')
  for (const [name, text] of [
    ['ca.pem', 'ca'],
    ['c.pem', 'client'],
    ['k.pem', 'client.key'],
  ] as const)
    await files.write(name, `\uFEFF${pem.text(text)}`)
  expect((await files.load()).servers[0]?.tls).toMatchObject({ ca: pem.text('ca'), key: pem.text('client.key') })
})

test('T-13 processes inherit how the network is reached', async () => {
  const env = {
    HTTP_PROXY: '1',
    https_proxy: '2',
    No_Proxy: 'no variable of that name',
    NO_PROXY: '3',
    NODE_EXTRA_CA_CERTS: '4',
    SSL_CERT_FILE: '5',
    OTHER: '6',
  }
  await using files = await yaml('servers:\n  a: { command: x }\n')
  const { No_Proxy: _, OTHER: __, ...inherited } = env
  expect((await files.load(undefined, { env })).servers[0]?.launch?.env).toEqual(inherited)
})
