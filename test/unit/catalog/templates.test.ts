import * as fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { matchesTemplate, parseTemplate } from '../../../src/catalog/names/templates.ts'

const matches = (template: string, uri: string): boolean => {
  const parsed = parseTemplate(template)
  return parsed !== undefined && matchesTemplate(parsed, uri)
}

describe('URI templates', () => {
  test.each([
    ['file:///{path}', 'file:///a.txt', true],
    ['file:///{path}', 'file:///a/b', false],
    ['file:///{+path}', 'file:///a/b', true],
    ['db://{t}/{id}', 'db://users/7', true],
    ['db://{t}/{id}', 'db://users', false],
    ['db://{t}/x{id}y', 'db://users/xxyyy', true],
    ['s://h{/a,b}', 's://h/1/2', true],
    ['s://h{/a,b}', 's://h', true],
    ['s://h{/a,b}', 's://house', false],
    ['s://h{?q,r}', 's://h?q=1&r=2', true],
    ['s://h{?q}', 's://hq', false],
    ['s://h{#f}', 's://h#a/b', true],
    ['s://h{.ext}', 's://h.tar.gz', true],
    ['s://h/{a}?k{&b}', 's://h/1?k&b=2', true],
  ])('%s and %s: %s', (template, uri, expected) => expect(matches(template, uri)).toBe(expected))

  test.each(['{+any}', '{scheme}://x', 'file:{+path}', 'relative/{x}', 'x:y{', ''])('B166 %j claims no bare URI', (template) =>
    expect(parseTemplate(template)).toBeUndefined(),
  )

  test('a template matches its own expansions', () => {
    const piece = fc.oneof(fc.constantFrom('/', 'a', '.', 'ab', '-'), fc.constantFrom('{x}', '{+x}'))
    fc.assert(
      fc.property(fc.array(piece), fc.string({ maxLength: 8 }), (pieces, value) => {
        const template = `m:/${pieces.join('')}`
        const uri = template.replaceAll('{x}', encodeURIComponent(value)).replaceAll('{+x}', encodeURI(value))
        expect(matches(template, uri)).toBe(true)
      }),
    )
  })

  test('T-27 a hostile template costs pieces times characters, no more', () => {
    const template = parseTemplate(`m:/${'{+a}a'.repeat(31)}b`)
    expect(template && matchesTemplate(template, `m:/${'a'.repeat(4000)}`)).toBe(false)
    expect(parseTemplate(`m:/${'{+a}a'.repeat(1000)}`)).toBeUndefined()
    expect(matches('m:/{+a}', `m:/${'a'.repeat(5000)}`)).toBe(false)
  })
})
