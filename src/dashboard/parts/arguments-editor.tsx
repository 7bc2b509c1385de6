/** Arguments of a call: a form where the schema allows one, or JSON. Reports the JSON text, or that it cannot be sent. */
import type { JSX } from 'preact'
import { useEffect, useMemo, useState } from 'preact/hooks'
import { indentJson, readJson, unquote } from '../../values/json-tree.ts'
import { enter, fieldsOf, keyOfField, leave } from '../model/schema-form.ts'
import type { Field, Values } from '../model/schema-form.ts'
import { lineOf } from '../model/text.ts'

export interface ArgumentsEditorProps {
  readonly schema: unknown
  /** Initial JSON text. */
  readonly initial: string
  /** `undefined`: the input cannot be sent. */
  readonly onChange: (json: string | undefined) => void
}

export const ArgumentsEditor = ({ schema, initial, onChange }: ArgumentsEditorProps): JSX.Element => {
  const fields = useMemo(() => fieldsOf(schema), [schema])
  const start = useMemo(() => (fields === undefined ? undefined : leave(fields, initial)), [fields, initial])
  const [isJson, setJson] = useState(start === undefined)
  const [text, setText] = useState(() => indentJson(initial))
  const [values, setValues] = useState<Values>(start?.values ?? {})
  const [extra, setExtra] = useState<Values>(start?.extra ?? {})
  const entered = fields === undefined ? undefined : enter(fields, values, extra)
  const isObject = readJson(text)?.kind === 'object'
  const json = isJson
    ? isObject
      ? text
      : undefined
    : Object.keys(entered?.problems ?? {}).length === 0
      ? entered?.json
      : undefined
  useEffect(() => onChange(json), [json])

  const toggle = (): void => {
    if (!isJson) {
      setText(indentJson(entered?.json ?? '{}'))
      setJson(true)
      return
    }
    const held = fields === undefined ? undefined : leave(fields, text)
    if (held === undefined) return
    setValues(held.values)
    setExtra(held.extra)
    setJson(false)
  }
  const canForm = fields !== undefined && (!isJson || leave(fields, text) !== undefined)
  return (
    <div class="arguments">
      <div class="tabs" role="group" aria-label="How arguments are entered">
        <button type="button" class="choice" aria-pressed={!isJson} disabled={!canForm} onClick={() => isJson && toggle()}>
          Form
        </button>
        <button type="button" class="choice" aria-pressed={isJson} onClick={() => !isJson && toggle()}>
          JSON
        </button>
      </div>
      {isJson || fields === undefined ? (
        <label class="field">
          <span class="field-label">Arguments as JSON</span>
          <textarea
            class="code"
            rows={Math.min(18, Math.max(6, text.split('\n').length + 1))}
            spellcheck={false}
            value={text}
            aria-invalid={!isObject}
            onInput={(event) => setText(event.currentTarget.value)}
          />
          {!isObject && <span class="field-problem">is not a JSON object</span>}
        </label>
      ) : fields.length === 0 ? (
        <p class="muted">This tool takes no arguments.</p>
      ) : (
        <Fields
          fields={fields}
          values={values}
          problems={entered?.problems ?? {}}
          onEnter={(key, value) => setValues((before) => ({ ...before, [key]: value }))}
        />
      )}
    </div>
  )
}

interface FieldsProps {
  readonly fields: readonly Field[]
  readonly values: Values
  readonly problems: Readonly<Record<string, string>>
  readonly onEnter: (key: string, value: string) => void
}

const Fields = ({ fields, ...rest }: FieldsProps): JSX.Element => (
  <div class="fields">
    {fields.map((field) => (
      <OneField key={keyOfField(field)} field={field} {...rest} />
    ))}
  </div>
)

const OneField = ({ field, values, problems, onEnter }: Omit<FieldsProps, 'fields'> & { readonly field: Field }): JSX.Element => {
  const key = keyOfField(field)
  const value = values[key] ?? ''
  // Decided once: another element would lose the focus while a text is typed.
  const [isLong] = useState(value.length > 80 || value.includes('\n'))
  const name = (
    <>
      {lineOf(field.label, 80)}
      {field.isRequired && (
        <span class="field-needed" title="required">
          {' '}
          *
        </span>
      )}
    </>
  )
  if (field.kind === 'group')
    return (
      <fieldset class="field-group">
        <legend>{name}</legend>
        {field.hint !== '' && <span class="field-hint">{lineOf(field.hint)}</span>}
        <Fields fields={field.fields} values={values} problems={problems} onEnter={onEnter} />
      </fieldset>
    )
  const problem = problems[key]
  const isProblemShown = problem !== undefined && (value !== '' || problem !== 'is required')
  const common = {
    value,
    'aria-invalid': isProblemShown,
    'aria-required': field.isRequired,
    onInput: (event: { readonly currentTarget: { readonly value: string } }) => onEnter(key, event.currentTarget.value),
  }
  return (
    <label class="field">
      <span class="field-label">
        {name} <span class="field-kind">{KINDS[field.kind]}</span>
      </span>
      {field.kind === 'choice' || field.kind === 'boolean' ? (
        <select {...common}>
          <option value="">not set</option>
          {(field.kind === 'boolean' ? ['true', 'false'] : field.choices).map((choice) => (
            <option key={choice} value={choice}>
              {lineOf(choice.startsWith('"') ? unquote(choice) : choice, 80)}
            </option>
          ))}
        </select>
      ) : field.kind === 'list' || field.kind === 'json' || isLong ? (
        <textarea
          {...common}
          rows={3}
          spellcheck={false}
          class={field.kind === 'json' ? 'code' : ''}
          placeholder={lineOf(field.example, 80)}
        />
      ) : (
        <input
          {...common}
          type="text"
          inputMode={field.kind === 'text' ? 'text' : 'decimal'}
          spellcheck={false}
          autocomplete="off"
          placeholder={lineOf(field.example, 80)}
        />
      )}
      {isProblemShown && <span class="field-problem">{problem}</span>}
      {field.hint !== '' && <span class="field-hint">{lineOf(field.hint)}</span>}
    </label>
  )
}

const KINDS = {
  text: '',
  number: 'number',
  integer: 'whole number',
  boolean: '',
  choice: '',
  list: 'one per line',
  json: 'JSON',
} as const
