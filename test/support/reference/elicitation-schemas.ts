/** The two forms the conformance suite inspects: one with a default of every kind, one with every kind of enum. */
import { inputRequired } from '@modelcontextprotocol/server'

const titled = (values: string[], titles: string[]) =>
  values.map((value, index) => ({ const: value, title: titles[index] ?? value }))
const options = ['option1', 'option2', 'option3']
const values = ['value1', 'value2', 'value3']

/** A default for every primitive type [SEP-1034]. */
export const everyDefault = inputRequired.elicit({
  message: 'Please review and update the form fields with defaults',
  requestedSchema: {
    type: 'object',
    properties: {
      name: { type: 'string', default: 'John Doe' },
      age: { type: 'integer', default: 30 },
      score: { type: 'number', default: 95.5 },
      status: { type: 'string', enum: ['active', 'inactive', 'pending'], default: 'active' },
      verified: { type: 'boolean', default: true },
    },
  },
})

/** Single and multiple choice, with and without titles, and the deprecated form [SEP-1330]. */
export const everyEnum = inputRequired.elicit({
  message: 'Please select options from the enum fields',
  requestedSchema: {
    type: 'object',
    properties: {
      untitledSingle: { type: 'string', enum: options },
      titledSingle: { type: 'string', oneOf: titled(values, ['First Option', 'Second Option', 'Third Option']) },
      legacyEnum: { type: 'string', enum: ['opt1', 'opt2', 'opt3'], enumNames: ['Option One', 'Option Two', 'Option Three'] },
      untitledMulti: { type: 'array', items: { type: 'string', enum: options } },
      titledMulti: { type: 'array', items: { anyOf: titled(values, ['First Choice', 'Second Choice', 'Third Choice']) } },
    },
  },
})
