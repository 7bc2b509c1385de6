import * as fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { exposeResult } from '../../../src/catalog/view/expose-result.ts'
import type { BlockPlace } from '../../../src/wire/message/content-blocks.ts'
import { exposeUri } from '../../../src/catalog/names/uris.ts'
import { Payload, join } from '../../../src/wire/message/payload.ts'

const exposed = (place: BlockPlace, json: string): string => {
  const result = Payload.at(Buffer.from(json))
  exposeResult(result, place, (uri) => exposeUri('fs', uri))
  return join(result.parts()).toString()
}

describe('URIs in results', () => {
  test('resource links and embedded resources of a tool get the exposed form, everything else stays', () => {
    const result = (link: string, inner: string): string =>
      `{"content" : [{"type":"text","text":"\\"resource file:///x"}, {"uri":${link},"type":"resource_link","size":9007199254740993,"_meta":{"uri":"file:///m"}},{"type":"resource","resource":{"blob":"uri","uri":${inner},"x":1.0}}],"structuredContent":{"type":"resource_link","uri":"file:///s"},"isError":false}`
    expect(exposed('content', result('"file:///a"', '"ui://a/b"'))).toBe(result('"fs+file:///a"', '"ui://~fs/a/b"'))
    expect(exposed('content', result('"https://h/a"', '"./relative"'))).toBe(result('"https://h/a"', '"./relative"'))
    expect(exposed('content', result('"file:\\/\\/\\/a"', '"m:\\u0041"'))).toBe(result('"fs+file:///a"', '"fs+m:A"'))
  })

  test('a block with repeated or escaped keys is exposed whichever of them counts', () => {
    expect(exposed('content', '{"content":[{"type":"text","type":"resource_link","uri":"m:1","u\\u0072i":"m:2"}]}')).toBe(
      '{"content":[{"type":"text","type":"resource_link","uri":"fs+m:1","u\\u0072i":"fs+m:2"}]}',
    )
  })

  test('messages of a prompt hold one block or several', () => {
    expect(
      exposed(
        'messages',
        '{"messages":[{"role":"user","content":{"type":"resource","resource":{"uri":"m:1"}}},{"content":[{"type":"resource_link","uri":"m:2"}]}]}',
      ),
    ).toBe(
      '{"messages":[{"role":"user","content":{"type":"resource","resource":{"uri":"fs+m:1"}}},{"content":[{"type":"resource_link","uri":"fs+m:2"}]}]}',
    )
  })

  test('contents of a read always carry the exposed form, their text is not looked at', () => {
    const html = '<a href=\\"ui://a/b\\">resource</a>'
    expect(exposed('contents', `{"contents":[{"uri":"ui://a/b","text":"${html}","_meta":{"ui":{"csp":{}}}}]}`)).toBe(
      `{"contents":[{"uri":"ui://~fs/a/b","text":"${html}","_meta":{"ui":{"csp":{}}}}]}`,
    )
  })

  test.each(['{}', '{"content":null}', '{"content":[1,"resource",[]]}', '{"content":{"type":"resource_link","uri":"m:1"}}'])(
    'an odd shape passes: %s',
    (json) => expect(exposed('content', json)).toBe(json),
  )

  test('B018 any content without resources leaves byte for byte', () => {
    const block = fc.jsonValue().filter((value) => !JSON.stringify(value).includes('"resource'))
    fc.assert(
      fc.property(fc.array(block), fc.jsonValue(), (content, structuredContent) => {
        const json = JSON.stringify({ content, structuredContent }, undefined, 1)
        expect(exposed('content', json)).toBe(json)
      }),
    )
  })
})
