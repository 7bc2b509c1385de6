/** How URIs of servers are spelled for hosts, and back (BRIDGING 4.4). */
import { describe, expect, test } from 'vitest'
import { uriMode } from '../../../src/catalog/names/naming.ts'
import { exposeListed, exposeUri, prefixUri, restoreUri } from '../../../src/catalog/names/uris.ts'
import { ALWAYS, NEVER } from './fixtures.ts'

const restored = (uri: string) => restoreUri(uri, (prefix) => prefix === 'fs')

describe('B165 an exposed URI', () => {
  test.each([
    ['file:///a', 'fs+file:///a'],
    ['git+ssh://h/x', 'fs+git+ssh://h/x'],
    ['ui://app/x', 'ui://~fs/app/x'],
    ['ui://', 'ui://~fs/'],
    ['{+any}', 'fs+{+any}'],
    ['db{x}://y', 'fs+db{x}://y'],
    ['docs/a.md', 'fs+:docs/a.md'],
    ['1x:y', 'fs+:1x:y'],
    ['https://h/x', 'fs+https://h/x'],
  ])('%s is %s, and comes back', (original, exposed) => {
    expect(prefixUri('fs', original)).toBe(exposed)
    expect(restored(exposed)).toEqual({ prefix: 'fs', original })
  })

  test.each([
    'file:///a',
    'fs+relative',
    'fs+',
    'fs+:',
    'other+file:///a',
    'ui://app/x',
    'ui://~fs',
    'ui://~other/x',
    '+file:///a',
    ' fs+file:///a',
  ])('is not %s', (uri) => {
    expect(restored(uri)).toBeUndefined()
  })

  test('in a list is never relative; in a result relative references stay; links to the web stay in both', () => {
    const both = (uri: string): string[] => [exposeListed('fs', uri), exposeUri('fs', uri)]
    expect(both('file:///a')).toEqual(['fs+file:///a', 'fs+file:///a'])
    expect(both('docs/a.md')).toEqual(['fs+:docs/a.md', 'docs/a.md'])
    expect(both('{+any}')).toEqual(['fs+{+any}', '{+any}'])
    for (const uri of ['http://h/x', 'HTTPS://h/x']) expect(both(uri)).toEqual([uri, uri])
    expect(both('https:x')).toEqual(['fs+https:x', 'fs+https:x'])
  })
})

test('URIs stay as they are where names do, or where the server says so', () => {
  expect([
    uriMode({ uris: 'namespaced' }, ALWAYS),
    uriMode({ uris: 'identity' }, ALWAYS),
    uriMode({ uris: 'namespaced' }, NEVER),
  ]).toEqual(['namespaced', 'identity', 'identity'])
})
