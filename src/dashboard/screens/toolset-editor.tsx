/**
 * Creates a toolset or changes the members of one: from the tools marked in the catalog and from a search, with its current cost.
 * Nothing is written before its plan was shown.
 */
import type { JSX } from 'preact'
import { useEffect, useMemo, useRef, useState } from 'preact/hooks'
import type { ConfigurationChange } from '../../admin/change/edit-changes.ts'
import type { FoundTool, ToolRow } from '../../admin/catalog/tools.ts'
import type { HostCap, ToolsetRow } from '../../admin/catalog/toolsets.ts'
import { formatCount, plural } from '../model/format.ts'
import { useKeys } from '../page/keys.ts'
import { useLoad } from '../page/load.ts'
import { clearMarks, marks } from '../page/marks.ts'
import { useDebouncedQuery } from '../page/debounced-query.ts'
import { Button, Chip, Line, Section, TextField } from '../parts/basics.tsx'
import { Budget } from '../parts/budget.tsx'
import { SearchBox } from '../parts/search-box.tsx'
import { EditDialog } from './edit.tsx'

/** Maximum number of shown members; the rest is counted. */
const MOST_SHOWN = 300

export const ToolsetEditor = ({
  toolset,
  hosts,
  onClose,
  onDone,
}: {
  /** `undefined`: a new one. */
  readonly toolset: ToolsetRow | undefined
  readonly hosts: readonly HostCap[]
  readonly onClose: () => void
  readonly onDone: () => void
}): JSX.Element => {
  const isNew = toolset === undefined
  const [name, setName] = useState('')
  const [description, setDescription] = useState('')
  const [most, setMost] = useState({ tools: '', tokens: '' })
  /** The added and the removed members of the toolset. */
  const [added, setAdded] = useState<readonly string[]>(isNew ? [...marks.peek()] : [])
  const [removed, setRemoved] = useState<readonly string[]>([])
  const [changes, setChanges] = useState<readonly ConfigurationChange[] | undefined>(undefined)
  const [first, words] = [useRef<HTMLInputElement>(null), useRef<HTMLInputElement>(null)]
  useEffect(() => (isNew ? first : words).current?.focus(), [])
  useKeys([{ key: '/', does: 'search tools to add', run: () => words.current?.focus() }])
  const { data: all } = useLoad<{ readonly tools: readonly ToolRow[] }>('/tools')
  const { data: held } = useLoad<{ readonly tools: readonly ToolRow[] }>(
    isNew ? '' : `/tools?toolset=${encodeURIComponent(toolset.name)}`,
  )
  const known = useMemo(() => new Map(all?.tools.map((tool) => [tool.name, tool])), [all])
  const before = held?.tools.map((tool) => tool.name) ?? []
  const members = [...before, ...added.filter((one) => !before.includes(one))]
  const kept = members.filter((one) => !removed.includes(one))
  const tokens = kept.reduce((sum, one) => sum + (known.get(one)?.tokens ?? 0), 0)
  const budget = { tools: countOf(most.tools), tokens: countOf(most.tokens) }
  const limits = isNew ? budget : toolset.budget
  const add = (one: string): void => {
    setRemoved((was) => was.filter((other) => other !== one))
    setAdded((was) => (was.includes(one) ? was : [...was, one]))
  }
  const take = (one: string): void => {
    if (before.includes(one)) setRemoved((was) => [...was, one])
    else setAdded((was) => was.filter((other) => other !== one))
  }
  const isBad = isNew && (name.trim() === '' || kept.length === 0 || Number.isNaN(budget.tools) || Number.isNaN(budget.tokens))
  const fresh = kept.filter((one) => !before.includes(one))
  const plan = (): void =>
    setChanges(
      isNew
        ? [
            {
              kind: 'new toolset',
              toolset: name.trim(),
              ...(description.trim() !== '' && { description: description.trim() }),
              tools: kept,
              budget: {
                ...(budget.tools !== undefined && { tools: budget.tools }),
                ...(budget.tokens !== undefined && { tokens: budget.tokens }),
              },
            },
          ]
        : [
            ...fresh.map((tool) => ({ kind: 'toolset' as const, toolset: toolset.name, tool, member: true })),
            ...removed.map((tool) => ({ kind: 'toolset' as const, toolset: toolset.name, tool, member: false })),
          ],
    )
  return (
    <Section title={isNew ? 'New toolset' : `Members of ${toolset.name}`}>
      <div class="toolset-editor">
        <div class="fields">
          {isNew && (
            <>
              <TextField
                focus={first}
                label="Name"
                hint="Lower-case letters, digits and hyphens. The name is the last part of the address."
                value={name}
                placeholder="review"
                spellcheck={false}
                autocomplete="off"
                onEnter={setName}
              />
              <TextField label="Description" value={description} placeholder="Reading code and files" onEnter={setDescription} />
              <div class="field-pair">
                {(['tools', 'tokens'] as const).map((what) => (
                  <TextField
                    key={what}
                    label={`Maximum number of ${what}`}
                    inputMode="numeric"
                    value={most[what]}
                    placeholder="no limit"
                    problem={Number.isNaN(budget[what]) && 'is not a whole number above 0'}
                    onEnter={(text) => setMost({ ...most, [what]: text })}
                  />
                ))}
              </div>
            </>
          )}
          <div class="budgets" aria-live="polite">
            <Budget name="Tools" used={kept.length} most={limits.tools || undefined} marks={hosts} />
            <Budget name="Tokens" used={tokens} most={limits.tokens || undefined} marks={[]} />
          </div>
          <AddByWords isIn={(one) => kept.includes(one)} onAdd={add} input={words} known={known} />
        </div>
        <div>
          <h3>
            {plural(kept.length, 'tool')}
            {fresh.length > 0 && !isNew && <span class="muted">, {formatCount(fresh.length)} new</span>}
            {removed.length > 0 && <span class="muted">, {formatCount(removed.length)} removed</span>}
          </h3>
          {members.length === 0 ? (
            <p class="muted note">
              None yet. Search for tools here, or mark tools in the <a href="/catalog">catalog</a> first.
            </p>
          ) : (
            <ul class="members">
              {members.slice(0, MOST_SHOWN).map((one) => {
                const isOut = removed.includes(one)
                return (
                  <li key={one} class={isOut ? 'member-out' : ''}>
                    <span class="member-name">
                      <Line text={one} most={100} />
                    </span>
                    {!isNew && fresh.includes(one) && <Chip tone="accent">new</Chip>}
                    <span class="muted num">{formatCount(known.get(one)?.tokens ?? 0)}</span>
                    <Button
                      tone="small"
                      aria-label={isOut ? `Keep ${one}` : `Remove ${one}`}
                      onClick={() => (isOut ? setRemoved((was) => was.filter((other) => other !== one)) : take(one))}
                    >
                      {isOut ? 'Keep' : 'Remove'}
                    </Button>
                  </li>
                )
              })}
              {members.length > MOST_SHOWN && <li class="muted">and {formatCount(members.length - MOST_SHOWN)} more</li>}
            </ul>
          )}
        </div>
      </div>
      <div class="dialog-actions">
        <Button onClick={onClose}>Cancel</Button>
        <Button tone="accent" disabled={isNew ? isBad : fresh.length + removed.length === 0} onClick={plan}>
          Show the plan …
        </Button>
      </div>
      {changes !== undefined && (
        <EditDialog
          changes={changes}
          onClose={() => setChanges(undefined)}
          onDone={() => {
            if (isNew) clearMarks()
            onDone()
          }}
        />
      )}
    </Section>
  )
}

/** The search of agents, with a button for each result. */
const AddByWords = ({
  isIn,
  onAdd,
  input,
  known,
}: {
  readonly isIn: (name: string) => boolean
  readonly onAdd: (name: string) => void
  readonly input: { current: HTMLInputElement | null }
  readonly known: ReadonlyMap<string, ToolRow>
}): JSX.Element => {
  const { text, debounced } = useDebouncedQuery()
  const { data } = useLoad<{ readonly tools: readonly FoundTool[] }>(
    debounced.trim() === '' ? '' : `/search?query=${encodeURIComponent(debounced)}`,
  )
  return (
    <div class="add-tools">
      <SearchBox
        box={input}
        label="Tools to add, by what they do"
        placeholder="Add tools by what they do: read files, open an issue"
        value={text}
      />
      {data?.tools.length === 0 && <p class="muted note">No tool was found. Use words of the tool’s description.</p>}
      <ul class="members">
        {data?.tools.map(({ name, description }) => (
          <li key={name}>
            <span class="member-name" title={description.slice(0, 400)}>
              <Line text={name} most={100} />
            </span>
            <span class="muted num">+{formatCount(known.get(name)?.tokens ?? 0)}</span>
            <Button
              tone="small"
              disabled={isIn(name)}
              aria-label={isIn(name) ? `Added: ${name}` : `Add ${name}`}
              onClick={() => onAdd(name)}
            >
              {isIn(name) ? 'Added' : 'Add'}
            </Button>
          </li>
        ))}
      </ul>
    </div>
  )
}

/** `undefined`: nothing is entered; `NaN`: it is not a number. */
const countOf = (text: string): number | undefined => {
  const trimmed = text.trim()
  if (trimmed === '') return undefined
  return /^[1-9]\d{0,8}$/.test(trimmed) ? Number(trimmed) : Number.NaN
}
