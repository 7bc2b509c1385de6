/** Edits of the configuration: the plan that is shown before anything is written, and the settings of one tool. */
import type { JSX } from 'preact'
import { useEffect, useState } from 'preact/hooks'
import type { EditEnd } from '../../admin/change/edit.ts'
import type { ConfigurationChange, ToolChange } from '../../admin/change/edit-changes.ts'
import type { ToolRow } from '../../admin/catalog/tools.ts'
import type { Toolsets } from '../../admin/catalog/toolsets.ts'
import type { WhyEnd } from '../../admin/explain/why.ts'
import { formatCount } from '../model/format.ts'
import { lineOf } from '../model/text.ts'
import { ApiError, ask, session } from '../page/api.ts'
import { useLoad } from '../page/load.ts'
import { notify } from '../page/notices.ts'
import { Banner, Button, Dialog, Line, Section, TextField } from '../parts/basics.tsx'
import { PlanRows, Problems } from './changes.tsx'

const send = (changes: readonly ConfigurationChange[], revision?: string): Promise<EditEnd> =>
  ask<EditEnd>('POST', '/edit', JSON.stringify({ changes, revision }))

/** Effect of an edit on the file and on hosts; `onDone`: it was written and applied, and the dialog is closed. */
export const EditDialog = ({
  changes,
  note = '',
  onClose,
  onDone,
}: {
  readonly changes: readonly ConfigurationChange[]
  /** The parts that it does not do, with the reason. */
  readonly note?: string
  readonly onClose: () => void
  readonly onDone: () => void
}): JSX.Element => {
  const [end, setEnd] = useState<EditEnd | undefined>(undefined)
  const [problem, setProblem] = useState('')
  const [isBusy, setBusy] = useState(true)
  const take = async (revision?: string): Promise<void> => {
    setBusy(true)
    setProblem('')
    try {
      const next = await send(changes, revision)
      if (next.kind === 'applied') {
        notify('Written and applied')
        onClose()
        return onDone()
      }
      setEnd(next)
    } catch (error) {
      if (!(error instanceof ApiError)) throw error
      setProblem(error.message)
      if (error.code === 'changed') setEnd(undefined)
    }
    setBusy(false)
  }
  useEffect(() => void take(), [])
  return (
    <Dialog title="Edit the configuration?" onClose={onClose}>
      {note !== '' && (
        <p class="banner banner-notice">
          <Line text={note} />
        </p>
      )}
      {problem !== '' && <Banner text={problem} />}
      {end?.kind === 'refused' && (
        <>
          <p class="banner banner-trouble">The change would be refused. Nothing was written.</p>
          <Problems problems={end.problems} />
        </>
      )}
      {end?.kind === 'planned' && (
        <>
          {end.files.map(({ file, diff }) => (
            <figure key={file} class="file-diff">
              <figcaption class="muted">
                <code>{file}</code>
              </figcaption>
              <DiffLines lines={diff} />
            </figure>
          ))}
          <PlanRows plan={end.plan} />
        </>
      )}
      <div class="dialog-actions">
        {end?.kind === 'planned' ? (
          <Button tone="accent" disabled={isBusy} onClick={() => void take(end.revision)}>
            {isBusy ? 'Writing …' : 'Write and reload'}
          </Button>
        ) : (
          <Button disabled={isBusy} onClick={() => void take()}>
            {isBusy ? 'Planning …' : 'Plan again'}
          </Button>
        )}
      </div>
    </Dialog>
  )
}

/** Maximum number of shown lines; the rest is counted. */
const MOST_LINES = 400

/** Lines that begin with a blank, `-` or `+`. */
const DiffLines = ({ lines }: { readonly lines: readonly string[] }): JSX.Element => (
  <pre class="block diff" tabIndex={0}>
    {lines.slice(0, MOST_LINES).map((line, at) => (
      <span key={at} class={line.startsWith('+') ? 'line-added' : line.startsWith('-') ? 'line-removed' : ''}>
        {`${lineOf(line, 2_000)}\n`}
      </span>
    ))}
    {lines.length > MOST_LINES && <span class="muted">… {formatCount(lines.length - MOST_LINES)} lines more</span>}
  </pre>
)

/** A longer description cannot be edited in the page. */
const MOST_EDITED = 20_000

/** Configurable settings of one tool; nothing if `ui.write` is off. */
export const ToolSettings = ({ tool, onDone }: { readonly tool: ToolRow; readonly onDone: () => void }): JSX.Element | null => {
  const { name, server, original, definition } = tool
  const toolsets = useLoad<Toolsets>('/toolsets')
  const why = useLoad<WhyEnd>(`/why?name=${encodeURIComponent(name)}`)
  const [change, setChange] = useState<ConfigurationChange | undefined>(undefined)
  const [newName, setName] = useState('')
  /** `undefined`: not edited. */
  const [edited, setEdited] = useState<string | undefined>(undefined)
  const listed = definition.description ?? ''
  const words = edited ?? listed
  if (session.value?.write !== true) return null
  const edit = (facts: Partial<ToolChange>): void => setChange({ kind: 'tool', server, tool: original, ...facts })
  const held = why.data?.kind === 'known' ? (why.data.all.find((one) => one.exposed === name)?.toolsets ?? []) : []
  const isSame = newName === '' && words === listed
  return (
    <Section title="In the configuration" tools={<Button onClick={() => edit({ hidden: true })}>Switch off …</Button>}>
      <div class="fields">
        <TextField label="New name after the prefix" value={newName} spellcheck={false} onEnter={setName} />
        {words.length > MOST_EDITED ? (
          <p class="muted">
            The description has {words.length.toLocaleString('en')} characters, too many to be edited here. Set another one in the
            file (<code>tools.{lineOf(original, 60)}.description</code>).
          </p>
        ) : (
          <label class="field">
            <span class="field-label">Description for hosts</span>
            <textarea rows={4} value={words} onInput={(event) => setEdited(event.currentTarget.value)} />
          </label>
        )}
        {(toolsets.data?.toolsets ?? []).map((toolset) => (
          <label key={toolset.name} class="inline-field">
            <input
              type="checkbox"
              checked={held.includes(toolset.name)}
              onClick={(event) => {
                event.preventDefault()
                setChange({ kind: 'toolset', toolset: toolset.name, tool: name, member: !held.includes(toolset.name) })
              }}
            />{' '}
            in toolset {toolset.name}
          </label>
        ))}
      </div>
      <div class="dialog-actions">
        <Button
          tone="accent"
          disabled={isSame}
          onClick={() =>
            edit({
              ...(newName !== '' && { name: newName }),
              ...(words !== listed && { description: words === '' ? null : words }),
            })
          }
        >
          Show the plan …
        </Button>
      </div>
      {change !== undefined && (
        <EditDialog
          changes={[change]}
          onClose={() => setChange(undefined)}
          onDone={() => {
            if (change.kind === 'tool') {
              setName('')
              setEdited(undefined)
            }
            why.reload()
            onDone()
          }}
        />
      )}
    </Section>
  )
}

/** Shows a tool again that `filter.deny` names; nothing if another rule hides it. */
export const ShowAgain = ({
  why,
  onDone,
}: {
  readonly why: WhyEnd | undefined
  readonly onDone: () => void
}): JSX.Element | null => {
  const [isOpen, setOpen] = useState(false)
  const hidden =
    why?.kind === 'known'
      ? why.all.find(
          ({ kind, exposed, steps }) =>
            kind === 'tools' &&
            exposed === undefined &&
            steps.some(({ effect, path }) => effect === 'hides' && path.includes('.filter.deny')),
        )
      : undefined
  if (hidden === undefined || session.value?.write !== true) return null
  return (
    <>
      <Button onClick={() => setOpen(true)}>Switch on …</Button>
      {isOpen && (
        <EditDialog
          changes={[{ kind: 'tool', server: hidden.server, tool: hidden.original, hidden: false }]}
          onClose={() => setOpen(false)}
          onDone={onDone}
        />
      )}
    </>
  )
}
