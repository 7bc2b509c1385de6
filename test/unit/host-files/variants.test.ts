/**
 * Files of hosts as they are found on machines: with CRLF, a byte order mark, tabs, without a line end, empty, with names in other scripts.
 * Whatever the form, servers are found, our entry goes in and out, and all else stays as it was.
 */
import { existsSync } from 'node:fs'
import { chmod, mkdir, readFile, writeFile } from 'node:fs/promises'
import { dirname, extname, join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { HostConnection } from '../../../src/host-files/connection.ts'
import { lookIn, readText } from '../../../src/host-files/edit/editor.ts'
import { findServers } from '../../../src/host-files/found.ts'
import { entryFor, HOSTS } from '../../../src/host-files/hosts.ts'
import type { HostPlace, HostName } from '../../../src/host-files/hosts.ts'
import { keysOf } from '../../../src/values/typed-keys.ts'
import { hostsHome } from './hosts-home.ts'
import type { HostsHome } from './hosts-home.ts'

const TARGET = { kind: 'stdio', command: '/usr/bin/node', args: ['/opt/trunkline/main.js', 'stdio'] } as const

/** The same file in another form; `undefined`: the language of the file has no such form. */
const FORMS: Readonly<Record<string, (text: string, extension: string) => string | undefined>> = {
  'with CRLF': (text) => text.replaceAll('\n', '\r\n'),
  'with a byte order mark': (text) => `\uFEFF${text}`,
  'with a byte order mark and CRLF': (text) => `\uFEFF${text.replaceAll('\n', '\r\n')}`,
  'indented by tabs': (text, extension) =>
    extension === '.json'
      ? text.replaceAll(/^( {2})+/gm, (spaces) => '\t'.repeat(spaces.length / 2))
      : extension === '.toml'
        ? text.replaceAll(/^(?=\w+ =)/gm, '\t')
        : undefined,
  'without a line end': (text) => text.trimEnd(),
  'with blank lines at its end': (text) => `${text}\n\n\n`,
  'with names in other scripts': (text, extension) =>
    extension === '.toml'
      ? text.replaceAll('mcp_servers.context7', 'mcp_servers."日本-Ünïcode💡"')
      : text.replaceAll(/\b(files|github|fetch|search|weather)\b/g, '日本-Ünïcode💡-$1'),
}

/** The one file of a host that the corpus has for this place. */
const placesOf = (host: HostName, files: HostsHome): readonly HostPlace[] =>
  HOSTS[host].places(files.around).filter(({ path, isOld }) => isOld !== true && existsSync(path))

describe.each(keysOf(HOSTS))('%s', (host) => {
  test.each(Object.keys(FORMS))('its file %s: found, connected, and disconnected byte for byte', async (form) => {
    await using files = await hostsHome([host])
    for (const place of placesOf(host, files)) {
      const plain = await readFile(place.path, 'utf8')
      const text = FORMS[form]!(plain, extname(place.path))
      if (text === undefined) continue
      const found = async () => (await findServers(files.around, [host])).filter(({ file }) => file === place.path)
      const before = (await found()).flatMap(({ servers }) => servers.length)
      await writeFile(place.path, text)
      expect((await found()).flatMap(({ servers }) => servers.length)).toEqual(before)
      const connection = new HostConnection(place, files.state)
      const entry = entryFor(HOSTS[host], TARGET)!
      await connection.connect(entry, [], await connection.planConnect(entry), true)

      const after = await readFile(place.path, 'utf8')
      expect(after.startsWith('\uFEFF')).toBe(text.startsWith('\uFEFF'))
      if (text.includes('\r\n')) expect(after.replaceAll('\r\n', '')).not.toContain('\n')
      else expect(after).not.toContain('\r')
      expect((await found()).map(({ isConnected }) => isConnected)).toContain(true)

      // As if the record were gone: our entry alone is taken out.
      const elsewhere = new HostConnection(place, join(files.state, 'other'))
      const planned = (await elsewhere.planDisconnect())!
      expect(readText(place.path, planned.after)).toEqual(readText(place.path, text))
      await connection.disconnect((await connection.planDisconnect())!, true)
      expect(await readFile(place.path, 'utf8')).toBe(text)
      await writeFile(place.path, plain)
    }
  })

  test.each(['', '\n', '\uFEFF', '{}', '{}\r\n', 'comments'])(
    'a file that holds %j alone is taken, and is as it was afterwards',
    async (content) => {
      await using files = await hostsHome()
      for (const place of HOSTS[host].places(files.around).filter(({ isOld }) => isOld !== true)) {
        const isJson = ['.json', '.jsonc'].includes(extname(place.path))
        if (content.startsWith('{}') && !isJson) continue
        const text = content === 'comments' ? (isJson ? '// mine\n' : '# mine\n') : content
        await mkdir(dirname(place.path), { recursive: true })
        await writeFile(place.path, text)
        expect((await findServers(files.around, [host])).flatMap(({ problems }) => problems)).toEqual([])
        const connection = new HostConnection(place, files.state)
        const entry = entryFor(HOSTS[host], TARGET)!
        await connection.connect(entry, [], await connection.planConnect(entry), true)
        const after = readText(place.path, await readFile(place.path, 'utf8'))
        const servers = lookIn(after, place.at)
        expect(place.isList === true ? (servers as unknown[])[0] : lookIn(servers, ['trunkline'])).toMatchObject(entry)
        await connection.disconnect((await connection.planDisconnect())!, true)
        expect(await readFile(place.path, 'utf8')).toBe(text)
      }
    },
  )
})

test('a file without permission to write stays as it is, and the remedy is said', async () => {
  await using files = await hostsHome(['cursor'])
  const [place] = placesOf('cursor', files)
  const before = await readFile(place!.path)
  await chmod(place!.path, 0o444)
  const connection = new HostConnection(place!, files.state)
  const entry = entryFor(HOSTS['cursor'], TARGET)!
  const planned = await connection.planConnect(entry)
  await expect(connection.connect(entry, [], planned, true)).rejects.toThrow(/mcp\.json is read-only; make it writable/)
  expect(await readFile(place!.path)).toEqual(before)
})
