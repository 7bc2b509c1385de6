/** Planned changes, definitions that differ from the approved ones, and the changes that invalidated prompt caches of hosts, with their times. */
import type { JSX } from 'preact'
import { useState } from 'preact/hooks'
import type { PastReload, PlanEnd, ReloadEnd } from '../../admin/change/reload-ends.ts'
import type { CatalogChange } from '../../admin/catalog/history.ts'
import type { History } from '../../admin/control.ts'
import type { UnapprovedChange } from '../../admin/catalog/offered.ts'
import type { EntryPlan, Plan } from '../../admin/change/plan.ts'
import type { Problem } from '../../config/syntax/problems.ts'
import { formatAgo, formatCount, formatTime, plural } from '../model/format.ts'
import { ask, session } from '../page/api.ts'
import { commandOf } from '../page/command.ts'
import { ROW_KEYS, useKeys } from '../page/keys.ts'
import { useLoad } from '../page/load.ts'
import type { Loaded } from '../page/load.ts'
import { attempting, notify } from '../page/notices.ts'
import { pathTo } from '../page/route.ts'
import { Button, Chip, Command, Dialog, Failed, Heading, Line, Section } from '../parts/basics.tsx'
import { Definitions } from '../parts/definitions.tsx'

export const Changes = (): JSX.Element => {
  const history = useLoad<History>('/history', 3_000)
  useKeys(ROW_KEYS)
  return (
    <div class="screen">
      <Heading title="Changes" />
      <Pending />
      <Approvals />
      <Timeline history={history} />
      <Reloads history={history} />
    </div>
  )
}

export const Problems = ({ problems }: { readonly problems: readonly Problem[] }): JSX.Element => (
  <ul class="rows">
    {problems.map(({ place, path, message, remedy }) => (
      <li key={`${place} ${path} ${message}`}>
        <code>{place}</code> <span class="muted">{path}</span> <Line text={message} />{' '}
        {remedy !== '' && <span class="muted">{remedy}</span>}
      </li>
    ))}
  </ul>
)

const Pending = (): JSX.Element => {
  const { data, error, reload } = useLoad<PlanEnd>('/plan', 5_000)
  const [isAsking, setAsking] = useState(false)
  const mayWrite = session.value?.write === true
  const apply = async (): Promise<void> => {
    setAsking(false)
    await attempting(async () => {
      const end = await ask<ReloadEnd>('POST', '/reload', '{}')
      if (end.kind === 'refused') notify('The configuration was refused', true)
      else notify(`Reloaded: ${end.added.length} added, ${end.removed.length} removed, ${end.changed.length} changed`)
    })
    reload()
  }
  const plan = data?.kind === 'planned' ? data.plan : undefined
  const isSame = plan !== undefined && isUnchanged(plan)
  return (
    <Section
      title="Effects of a reload"
      tools={
        !isSame &&
        plan !== undefined && (
          <Button
            tone="accent"
            disabled={!mayWrite}
            title={mayWrite ? undefined : 'ui.write is off'}
            onClick={() => setAsking(true)}
          >
            Reload …
          </Button>
        )
      }
    >
      {error !== undefined && <Failed error={error} onRetry={reload} />}
      {data?.kind === 'refused' && (
        <>
          <p class="banner banner-trouble">The files contain errors. The previous configuration stays in use.</p>
          <Problems problems={data.problems} />
        </>
      )}
      {plan !== undefined && (isSame ? <p class="muted">No change: the files are in use.</p> : <PlanRows plan={plan} />)}
      {plan !== undefined && !isSame && !mayWrite && <Command text={commandOf('reload')} />}
      {isAsking && plan !== undefined && (
        <Dialog title="Reload the configuration?" onClose={() => setAsking(false)}>
          <PlanRows plan={plan} />
          <div class="dialog-actions">
            <Button tone="accent" onClick={() => void apply()}>
              Reload
            </Button>
          </div>
        </Dialog>
      )}
    </Section>
  )
}

const isUnchanged = ({ servers, entries, toolsets, needsRestart, listeners, others }: Plan): boolean =>
  servers.length + entries.length + needsRestart.length === 0 &&
  !listeners &&
  !others &&
  toolsets.every(({ before, after }) => JSON.stringify(before) === JSON.stringify(after))

const SIGNS = { added: '+', removed: '−', changed: '~' } as const
const signed = (tokens: number): string =>
  tokens === 0 ? '' : `${tokens > 0 ? '+' : '−'}${formatCount(Math.abs(tokens))} tokens`

const Sign = ({ change }: { readonly change: 'added' | 'removed' | 'changed' }): JSX.Element => (
  <span class={`sign sign-${change === 'changed' ? 'replaced' : change}`} role="img" aria-label={change}>
    {SIGNS[change]}
  </span>
)

/** Effects of a plan on servers, entries and toolsets. */
export const PlanRows = ({ plan }: { readonly plan: Plan }): JSX.Element => {
  const { servers, entries, toolsets, needsRestart, listeners, others, total, warnings, collisions } = plan
  return (
    <ul class="plan">
      {servers.map(({ key, change, options, effect, inFlight }) => (
        <li key={key}>
          <Sign change={change} />
          <span>
            server <strong>{key}</strong> <span class="muted">{options.join(', ')}</span>
          </span>
          <span class="muted">
            {effect === 'nothing' ? 'nothing restarts' : effect}
            {inFlight > 0 && `, ${plural(inFlight, 'call')} in progress`}
          </span>
        </li>
      ))}
      {entries.map((entry) => (
        <Entry key={`${entry.kind} ${entry.name}`} entry={entry} />
      ))}
      {toolsets.map(({ name, before, after }) => (
        <li key={name}>
          <Sign change={before === undefined ? 'added' : after === undefined ? 'removed' : 'changed'} />
          <span>
            toolset <strong>{name}</strong>
          </span>
          <span class="muted num">
            {before !== undefined && `${before.tools} tools, ${formatCount(before.tokens)} tokens`}
            {before !== undefined && after !== undefined && ' → '}
            {after !== undefined && `${after.tools} tools, ${formatCount(after.tokens)} tokens`}
            {after?.budget.tokens !== undefined && ` (budget ${formatCount(after.budget.tokens)})`}
          </span>
        </li>
      ))}
      {[
        ...needsRestart.map((path) => `${path}: only after a restart`),
        ...(listeners ? ['listeners are opened at other addresses'] : []),
        ...(others ? ['other options of Trunkline'] : []),
        ...collisions,
        ...warnings,
      ].map((text) => (
        <li key={text}>
          <Sign change="changed" />
          <Line text={text} />
        </li>
      ))}
      <li class="muted num">
        <span />
        <span>Everything</span>
        <span>
          {total.before.tools} tools, {formatCount(total.before.tokens)} tokens → {total.after.tools} tools,{' '}
          {formatCount(total.after.tokens)} tokens
        </span>
      </li>
    </ul>
  )
}

const Entry = ({ entry: { kind, name, change, tokens } }: { readonly entry: EntryPlan }): JSX.Element => (
  <li>
    <Sign change={change} />
    <span>
      {kind.replace(/s$/, '')} <Line text={name} most={100} />
    </span>
    <span class="muted num">{signed(tokens)}</span>
  </li>
)

const Approvals = (): JSX.Element => {
  const { data, error, reload } = useLoad<readonly UnapprovedChange[]>('/changes', 5_000)
  const [byHand, setByHand] = useState('')
  const mayWrite = session.value?.write === true
  const approve = async ({ server, name, kind }: UnapprovedChange): Promise<void> => {
    await attempting(async () => {
      const tool = kind === 'tools' ? `&tool=${encodeURIComponent(name)}` : ''
      const path = `/approve?server=${encodeURIComponent(server)}${tool}`
      const { approved } = await ask<{ readonly approved: readonly string[] }>('POST', path, '{}')
      // Differences from a lock file, and definitions that are served anyway, are not approved here.
      if (approved.length === 0) setByHand(`${server} ${name}`)
      else notify(`Approved ${approved.join(', ')}`)
    })
    reload()
  }
  return (
    <Section title="Not approved">
      {error !== undefined && <Failed error={error} onRetry={reload} />}
      {data?.length === 0 && (
        <p class="muted">
          Every definition is the approved one, or the first one that was received. The option <code>lock</code> decides what
          happens to other definitions.
        </p>
      )}
      <div class="approvals">
        {data?.map((change) => (
          <article key={`${change.server} ${change.kind} ${change.name}`} class="approval" data-row>
            <header>
              <Chip tone="notice">{change.from === undefined ? 'new' : change.to === undefined ? 'removed' : 'changed'}</Chip>
              {change.kind === 'tools' ? (
                <a href={pathTo('tools', change.exposed)}>
                  <Line text={change.exposed} most={100} />
                </a>
              ) : (
                <Line text={`${change.kind} ${change.exposed}`} most={100} />
              )}
              <span class="muted">{change.server}</span>
              <span class="spacer" />
              {mayWrite ? (
                <Button tone="small" onClick={() => void approve(change)}>
                  {change.kind === 'tools' ? 'Approve' : `Approve all of ${change.server}`}
                </Button>
              ) : (
                <span class="muted">ui.write is off</span>
              )}
            </header>
            {byHand === `${change.server} ${change.name}` && (
              <div class="by-hand" role="status">
                <p>It is not on hold in this process. This command writes it into the lock file:</p>
                <Command text={commandOf('approve', change.server, ...(change.name === '' ? [] : [change.name]))} />
              </div>
            )}
            <Definitions
              before={change.from?.definition}
              after={change.to?.definition}
              beforeTitle="Approved"
              afterTitle="Current"
            />
          </article>
        ))}
      </div>
    </Section>
  )
}

interface HistoryProps {
  readonly history: Loaded<History>
}

const Timeline = ({ history: { data, error, reload } }: HistoryProps): JSX.Element => (
  <Section title="Changes that invalidated prompt caches">
    {error !== undefined && <Failed error={error} onRetry={reload} />}
    <p class="muted note">
      A prompt begins with the list of tools. Each change of its bytes makes hosts pay for it again.
      {data?.since !== null &&
        data?.since !== undefined &&
        ` Watched since ${formatTime(data.since).slice(0, 8)}, while this listener is open.`}
    </p>
    {data?.changes.length === 0 ? (
      <p class="pad-top">The list has not changed: no cache was emptied.</p>
    ) : (
      <ol class="timeline">
        {data?.changes.toReversed().map((change) => (
          <li key={change.at} data-row>
            <details>
              <summary>
                <span class="num">{formatTime(change.at).slice(0, 8)}</span> <strong>{headline(change)}</strong>{' '}
                <span class="muted num">
                  {signed(change.entries.reduce((sum, { tokens }) => sum + tokens, 0))} · {plural(change.tools, 'tool')} since
                  then · {formatAgo(change.at, Date.now())}
                </span>
              </summary>
              <ul class="plan">
                {change.entries.map((entry) => (
                  <li key={`${entry.kind} ${entry.name}`}>
                    <Sign change={entry.change} />
                    <span>
                      {entry.kind === 'tools' ? (
                        <a href={pathTo('tools', entry.name)}>
                          <Line text={entry.name} most={100} />
                        </a>
                      ) : (
                        <Line text={`${entry.kind} ${entry.name}`} most={100} />
                      )}{' '}
                      <span class="muted">{entry.server}</span>
                    </span>
                    <span class="muted num">{signed(entry.tokens)}</span>
                  </li>
                ))}
                {change.more > 0 && <li class="muted">and {formatCount(change.more)} more</li>}
              </ul>
            </details>
          </li>
        ))}
      </ol>
    )}
  </Section>
)

const Reloads = ({ history: { data } }: HistoryProps): JSX.Element => (
  <Section title="Reloads">
    {data?.reloads.length === 0 ? (
      <p class="muted">The configuration is that of the start.</p>
    ) : (
      <ol class="timeline">
        {data?.reloads.toReversed().map((reload) => (
          <li key={reload.at} data-row tabIndex={-1}>
            <div class="reload">
              <span class="num">{formatTime(reload.at).slice(0, 8)}</span>
              <strong class={reload.end === 'refused' ? 'trouble' : ''}>{reload.end}</strong>
              <Line text={describeReload(reload)} />
              <span class="muted num">{formatAgo(reload.at, Date.now())}</span>
            </div>
            {reload.problems.length > 0 && <Problems problems={reload.problems} />}
          </li>
        ))}
      </ol>
    )}
  </Section>
)

const describeReload = ({ added, removed, changed, entries, end }: PastReload): string => {
  const servers = [
    ...added.map((key) => `+ ${key}`),
    ...removed.map((key) => `− ${key}`),
    ...changed.map((key) => `~ ${key}`),
  ].join(', ')
  if (end === 'refused') return 'the previous configuration stayed in use'
  const listed = entries === 0 ? 'no list of hosts changed' : `${plural(entries, 'entry', 'entries')} of lists changed`
  return servers === '' ? `no server restarted, ${listed}` : `servers ${servers}; ${listed}`
}

const headline = ({ entries, isOrder, more }: CatalogChange): string => {
  if (isOrder) return 'only the order changed'
  const servers = [...new Set(entries.map(({ server }) => server))]
  const what = (change: 'added' | 'removed' | 'changed'): string[] => {
    const count = entries.filter((entry) => entry.change === change).length
    return count === 0 ? [] : [`${count} ${change}`]
  }
  return `${[...what('added'), ...what('changed'), ...what('removed')].join(', ')}${more > 0 ? ', more' : ''} (${servers.join(', ')})`
}
