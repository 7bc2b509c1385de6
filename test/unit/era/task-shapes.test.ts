import { describe, expect, test } from 'vitest'
import { legacyCreation, modernCreation, modernTask, relatedTask, relateTo, unrelate } from '../../../src/era/task-shapes.ts'
import { join, Payload } from '../../../src/wire/message/payload.ts'
import type { JsonObject } from '../../../src/wire/message/payload.ts'

const RELATED = 'io.modelcontextprotocol/related-task'
const textOf = (object: JsonObject | undefined): string => (object === undefined ? '' : join(object.parts()).toString())
const payload = (text: string): Payload => Payload.at(Buffer.from(text))

describe('a task in the words of the other generation', () => {
  test('changes the names of its times and nothing else', () => {
    const task = payload('{"taskId":"t","status":"working","ttl":6.0e4,"pollInterval":50,"own":[1.0]}')
    expect(textOf(modernTask(task))).toBe('{"taskId":"t","status":"working","ttlMs":6.0e4,"pollIntervalMs":50,"own":[1.0]}')
  })

  test('without a lifetime is one without an end', () => {
    expect(textOf(modernTask(payload('{"taskId":"t"}')))).toBe('{"taskId":"t","ttlMs":null}')
  })

  test.each(['constructor', 'toString', '__proto__'])('keeps a member that is called %s', (key) => {
    expect(textOf(modernTask(payload(`{"taskId":"t","ttl":1,"${key}":2}`)))).toBe(`{"taskId":"t","ttlMs":1,"${key}":2}`)
  })

  test('a created one is flat in one and nested in the other, and comes back as it was', () => {
    const legacy =
      '{"task":{"taskId":"t","ttl":null,"pollInterval":5},"_meta":{"io.modelcontextprotocol/model-immediate-response":"soon"}}'
    const modern = modernCreation(payload(legacy))
    expect(textOf(modern)).toBe(
      '{"taskId":"t","ttlMs":null,"pollIntervalMs":5,"_meta":{"io.modelcontextprotocol/model-immediate-response":"soon"}}',
    )
    modern?.set('resultType', '"task"')
    expect(textOf(modern && legacyCreation(modern))).toBe(legacy)
  })

  test.each(['{"content":[]}', '{"task":"t"}', '{"task":{"status":"working"}}'])('%s is no created task', (text) =>
    expect(modernCreation(payload(text))).toBeUndefined(),
  )
})

describe('B182 what a message belongs to', () => {
  test('is read, replaced and taken away', () => {
    const params = payload(`{"a":1,"_meta":{"k":2,"${RELATED}":{"taskId":"t"}}}`)
    expect(relatedTask(params)).toBe('t')
    relateTo(params, 'u')
    expect(textOf(params)).toBe(`{"a":1,"_meta":{"k":2,"${RELATED}":{"taskId":"u"}}}`)
    unrelate(params)
    expect(textOf(params)).toBe('{"a":1,"_meta":{"k":2}}')
  })

  test('leaves no empty _meta behind, and is put where there was none', () => {
    const params = payload(`{"_meta":{"${RELATED}":{"taskId":"t"}}}`)
    unrelate(params)
    expect(textOf(params)).toBe('{}')
    const bare = payload('{}')
    relateTo(bare, 't')
    expect(textOf(bare)).toBe(`{"_meta":{"${RELATED}":{"taskId":"t"}}}`)
    unrelate(payload('{}'))
    expect(relatedTask(payload('{"_meta":{}}'))).toBeUndefined()
  })
})
