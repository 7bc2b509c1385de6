/** Actions on all marked tools at once: disable, enable, add to a toolset, remove from one, tag their servers. */
import type { JSX } from 'preact'
import { useState } from 'preact/hooks'
import type { ConfigurationChange } from '../../admin/change/edit-changes.ts'
import type { ToolRow } from '../../admin/catalog/tools.ts'
import type { Toolsets } from '../../admin/catalog/toolsets.ts'
import { formatCount, plural } from '../model/format.ts'
import { useLoad } from '../page/load.ts'
import { clearMarks } from '../page/marks.ts'
import { go } from '../page/route.ts'
import { Button, Chip, Dialog, TextField } from '../parts/basics.tsx'
import { EditDialog } from './edit.tsx'

/** One tool, listed to hosts or hidden from them. */
export interface MarkedTool extends Pick<ToolRow, 'name' | 'server' | 'original' | 'tokens'> {
  /** Absent: it is listed to hosts. `isNamed`: the rule hides only this tool. */
  readonly off: { readonly isNamed: boolean; readonly path: string } | undefined
}

interface Batch {
  readonly changes: readonly ConfigurationChange[]
  readonly note: string
}

export const MarkedTools = ({
  tools,
  onDone,
}: {
  readonly tools: readonly MarkedTool[]
  readonly onDone: () => void
}): JSX.Element => {
  const [batch, setBatch] = useState<Batch | undefined>(undefined)
  const [asked, setAsked] = useState<'toolset' | 'tag' | undefined>(undefined)
  const on = tools.filter(({ off }) => off === undefined)
  const off = tools.filter((tool) => tool.off !== undefined)
  const own = off.filter((tool) => tool.off?.isNamed === true)
  const plan = (changes: readonly ConfigurationChange[], note = ''): void => {
    setAsked(undefined)
    setBatch({ changes, note })
  }
  return (
    <section class="marked" aria-label="Marked tools">
      <p role="status">
        <strong class="num">{formatCount(tools.length)}</strong> marked
        <span class="muted num"> · about {formatCount(tools.reduce((sum, { tokens }) => sum + tokens, 0))} tokens</span>
      </p>
      <div class="marked-actions">
        {on.length > 0 && <Button onClick={() => plan(on.map((tool) => hideOf(tool, true)))}>Switch off …</Button>}
        {off.length > 0 && (
          <Button
            disabled={own.length === 0}
            title={own.length === 0 ? `hidden by ${off[0]?.off?.path ?? ''}` : undefined}
            onClick={() =>
              plan(
                own.map((tool) => hideOf(tool, false)),
                othersNote(off.length - own.length),
              )
            }
          >
            Switch on …
          </Button>
        )}
        {on.length > 0 && <Button onClick={() => setAsked('toolset')}>Toolset …</Button>}
        <Button onClick={() => setAsked('tag')}>Tag …</Button>
        <Button onClick={clearMarks}>Clear</Button>
      </div>
      {asked === 'toolset' && <ToolsetDialog tools={on} onPlan={plan} onClose={() => setAsked(undefined)} />}
      {asked === 'tag' && <TagDialog tools={tools} onPlan={plan} onClose={() => setAsked(undefined)} />}
      {batch !== undefined && (
        <EditDialog
          changes={batch.changes}
          note={batch.note}
          onClose={() => setBatch(undefined)}
          onDone={() => {
            clearMarks()
            onDone()
          }}
        />
      )}
    </section>
  )
}

const hideOf = ({ server, original }: MarkedTool, hidden: boolean): ConfigurationChange => ({
  kind: 'tool',
  server,
  tool: original,
  hidden,
})

const othersNote = (count: number): string =>
  count === 0
    ? ''
    : `${plural(count, 'tool')} more stay switched off: a pattern or an annotation hides them. Their pages show the rule and its place.`

interface AskProps {
  readonly tools: readonly MarkedTool[]
  readonly onPlan: (changes: readonly ConfigurationChange[]) => void
  readonly onClose: () => void
}

const ToolsetDialog = ({ tools, onPlan, onClose }: AskProps): JSX.Element => {
  const { data } = useLoad<Toolsets>('/toolsets')
  const members = (toolset: string, member: boolean): void =>
    onPlan(tools.map(({ name }) => ({ kind: 'toolset', toolset, tool: name, member })))
  return (
    <Dialog title={`A toolset with ${plural(tools.length, 'tool')}`} onClose={onClose}>
      <ul class="choose">
        {data?.toolsets.map(({ name, tools: count, tokens, isOver }) => (
          <li key={name}>
            <strong>{name}</strong>
            <span class="muted num">
              {plural(count, 'tool')}, {formatCount(tokens)} tokens
            </span>
            {isOver && <Chip tone="notice">over its budget</Chip>}
            <span class="spacer" />
            <Button tone="small" onClick={() => members(name, true)}>
              Put into {name} …
            </Button>
            <Button tone="small" onClick={() => members(name, false)}>
              Remove from {name} …
            </Button>
          </li>
        ))}
      </ul>
      <div class="dialog-actions">
        <Button
          tone="accent"
          onClick={() => {
            onClose()
            go('/toolsets?new=1')
          }}
        >
          New toolset …
        </Button>
      </div>
    </Dialog>
  )
}

/** Tags belong to servers: a tag applies to all tools of the server. */
const TagDialog = ({ tools, onPlan, onClose }: AskProps): JSX.Element => {
  const [tag, setTag] = useState('')
  const servers = [...new Set(tools.map(({ server }) => server))]
  const tagAll = (tagged: boolean): void => onPlan(servers.map((server) => ({ kind: 'tag', server, tag: tag.trim(), tagged })))
  return (
    <Dialog title={`Tag ${plural(servers.length, 'server')}`} onClose={onClose}>
      <p>
        Toolsets choose servers by tags (<code>servers: [{tag.trim() || 'code'}]</code>). The tags of the marked tools are{' '}
        {servers.slice(0, 12).map((server) => (
          <Chip key={server}>{server}</Chip>
        ))}
        {servers.length > 12 && `and ${formatCount(servers.length - 12)} more`}
      </p>
      <TextField label="Tag" value={tag} spellcheck={false} autocomplete="off" onEnter={setTag} />
      <div class="dialog-actions">
        <Button disabled={tag.trim() === ''} onClick={() => tagAll(false)}>
          Remove …
        </Button>
        <Button tone="accent" disabled={tag.trim() === ''} onClick={() => tagAll(true)}>
          Tag …
        </Button>
      </div>
    </Dialog>
  )
}
