/** Toolsets: cost and budget of each, search in it, and how to connect a host to it. */
import type { JSX } from 'preact'
import { useRef } from 'preact/hooks'
import type { FoundTool } from '../../admin/catalog/tools.ts'
import type { HostCap, ToolsetRow, Toolsets as AllToolsets } from '../../admin/catalog/toolsets.ts'
import type { ConnectGuide } from '../../host/listener-context.ts'
import { formatCount, plural } from '../model/format.ts'
import { session } from '../page/api.ts'
import { commandOf } from '../page/command.ts'
import { ROW_KEYS, useKeys } from '../page/keys.ts'
import { useLoad } from '../page/load.ts'
import { pathTo, route, setQuery } from '../page/route.ts'
import { useDebouncedQuery } from '../page/debounced-query.ts'
import { Block, Button, Chip, Command, CopyButton, Empty, Failed, Heading, Line, Section } from '../parts/basics.tsx'
import { Budget } from '../parts/budget.tsx'
import { SearchBox } from '../parts/search-box.tsx'
import { safeUrl } from '../parts/sign-in.tsx'
import { ToolsetEditor } from './toolset-editor.tsx'

export const Toolsets = (): JSX.Element => {
  const { data, error, reload } = useLoad<AllToolsets>('/toolsets', 5_000)
  const chosen = route.value.query.get('toolset') ?? ''
  const box = useRef<HTMLInputElement>(null)
  useKeys([...ROW_KEYS, { key: '/', does: 'try a search', run: () => box.current?.focus() }])
  const known = data?.toolsets.find(({ name }) => name === chosen)
  const mayWrite = session.value?.write === true
  const isNew = mayWrite && route.value.query.has('new')
  const edited = mayWrite ? data?.toolsets.find(({ name }) => name === route.value.query.get('edit')) : undefined
  const close = (): void => setQuery({ new: '', edit: '', q: '' })
  return (
    <div class="screen">
      <Heading title="Toolsets">
        {data !== undefined && (
          <span class="muted num">
            Everything: {plural(data.whole.tools, 'tool')}, about {formatCount(data.whole.tokens)} tokens
          </span>
        )}
        {mayWrite && (
          <Button disabled={isNew} onClick={() => setQuery({ new: '1', edit: '', q: '' })}>
            New toolset …
          </Button>
        )}
      </Heading>
      {error !== undefined && <Failed error={error} onRetry={reload} />}
      {data !== undefined && (isNew || edited !== undefined) && (
        <ToolsetEditor
          key={edited?.name ?? ''}
          toolset={edited}
          hosts={data.hosts}
          onClose={close}
          onDone={() => {
            close()
            reload()
          }}
        />
      )}
      {data?.toolsets.length === 0 && !isNew && (
        <Empty title="No toolset is configured">
          <p>
            A toolset is a named part of the catalog with its own address. An agent that uses it sees only the tools that it
            needs:
          </p>
          <Block
            text={
              'toolsets:\n  review:\n    description: Reading code and files\n    tools: ["gh__*", "files__read_*"]\n    budget: { tools: 20, tokens: 4k }'
            }
          />
        </Empty>
      )}
      {data !== undefined && (
        <div class="toolsets">
          {data.toolsets.map((toolset) => (
            <Card
              key={toolset.name}
              toolset={toolset}
              hosts={data.hosts}
              isChosen={toolset.name === chosen}
              mayEdit={mayWrite && toolset !== edited}
            />
          ))}
        </div>
      )}
      {data !== undefined && (
        <>
          {!isNew && edited === undefined && <Search box={box} toolset={chosen} all={data.toolsets} />}
          <Connect toolset={chosen} url={known?.url ?? data.whole.url} />
        </>
      )}
    </div>
  )
}

const Card = ({
  toolset,
  hosts,
  isChosen,
  mayEdit,
}: {
  readonly toolset: ToolsetRow
  readonly hosts: readonly HostCap[]
  readonly isChosen: boolean
  readonly mayEdit: boolean
}): JSX.Element => {
  const { name, description, tools, tokens, budget, isOver, isSearched, findings, url } = toolset
  return (
    <section class="section toolset" aria-label={name} data-row>
      <header class="section-head">
        <h2>{name}</h2>
        {isSearched && <Chip tone="accent">searched</Chip>}
        {isOver && <Chip tone="notice">over its budget</Chip>}
        <div class="section-tools">
          {mayEdit && (
            <button type="button" class="choice" onClick={() => setQuery({ edit: name, new: '', q: '' })}>
              Members …
            </button>
          )}
          <button
            type="button"
            class="choice"
            aria-pressed={isChosen}
            onClick={() => setQuery({ toolset: isChosen ? '' : name })}
          >
            Search, connect
          </button>
        </div>
      </header>
      {description !== undefined && (
        <p>
          <Line text={description} />
        </p>
      )}
      <Budget name="Tools" used={tools} most={budget.tools} marks={hosts} />
      <Budget name="Tokens" used={tokens} most={budget.tokens} marks={[]} />
      {isSearched && <p class="muted note">Hosts are listed three tools that search in place of these.</p>}
      <p class="muted note">
        <code>{url}</code>
      </p>
      {findings.length > 0 && (
        <ul class="rows note">
          {findings.map((finding) => (
            <li key={finding} class="verdict-notice">
              <Line text={finding} />
            </li>
          ))}
        </ul>
      )}
    </section>
  )
}

const Search = ({
  box,
  toolset,
  all,
}: {
  readonly box: { current: HTMLInputElement | null }
  readonly toolset: string
  readonly all: readonly ToolsetRow[]
}): JSX.Element => {
  const { text, debounced } = useDebouncedQuery()
  const at = toolset === '' ? '' : `&toolset=${encodeURIComponent(toolset)}`
  const { data } = useLoad<{ readonly tools: readonly FoundTool[] }>(
    debounced.trim() === '' ? '' : `/search?query=${encodeURIComponent(debounced)}${at}`,
  )
  const best = data?.tools[0]?.score ?? 1
  return (
    <Section
      title="Try the search"
      tools={
        <label class="inline-field">
          <span class="sr-only">Toolset</span>
          <select value={toolset} onInput={(event) => setQuery({ toolset: event.currentTarget.value })}>
            <option value="">everything</option>
            {all.map(({ name }) => (
              <option key={name} value={name}>
                {name}
              </option>
            ))}
          </select>
        </label>
      }
    >
      <SearchBox
        box={box}
        label="Describe the task"
        placeholder="Describe the task: find code, open an issue"
        value={text}
        hasKey
      />
      {debounced.trim() === '' ? (
        <p class="muted note">
          With <code>discovery: search</code>, agents find tools by such words, in this order.
        </p>
      ) : data?.tools.length === 0 ? (
        <p class="muted note">No tool was found. Use words of the tool’s description.</p>
      ) : (
        <ol class="found">
          {data?.tools.map(({ name, description, score }) => (
            <li key={name} data-row>
              <span class="found-score" aria-hidden="true">
                <span style={{ width: `${(score / best) * 100}%` }} />
              </span>
              <a href={pathTo('tools', name)}>
                <Line text={name} most={80} />
              </a>
              <span class="muted">
                <Line text={description} most={160} />
              </span>
            </li>
          ))}
        </ol>
      )}
    </Section>
  )
}

const Connect = ({ toolset, url }: { readonly toolset: string; readonly url: string | undefined }): JSX.Element => {
  const { data, error } = useLoad<{ readonly guides: readonly ConnectGuide[] }>(
    url === undefined ? '' : `/guides${toolset === '' ? '' : `?toolset=${encodeURIComponent(toolset)}`}`,
  )
  return (
    <Section
      title={toolset === '' ? 'Connect a host to all tools' : `Connect a host to ${toolset}`}
      tools={url !== undefined && <CopyButton text={url} what="the address" label="Copy the address" />}
    >
      {url === undefined ? (
        <p class="muted">One host is served over stdio. There is no address.</p>
      ) : (
        <>
          <p class="note">This command adds Trunkline to the file of a host and keeps a backup:</p>
          <Command text={commandOf('connect', 'claude-code', ...(toolset === '' ? [] : ['--toolset', toolset]))} />
          {error !== undefined && <Failed error={error} />}
          <div class="guides">
            {data?.guides.map(({ label, file, text, afterwards, link }) => (
              <details key={label} class="guide">
                <summary>
                  <strong>{label}</strong> <span class="muted">{file}</span>
                </summary>
                <div class="guide-body">
                  <Block text={text} />
                  <p class="guide-end">
                    <CopyButton text={text} what={`the entry of ${label}`} />
                    {link !== undefined && !/^https?:/.test(link) && (
                      <CopyButton text={link} what="the install link" label="Copy the install link" />
                    )}
                    {link !== undefined && /^https?:/.test(link) && (
                      <a class="button button-small" href={safeUrl(link)} target="_blank" rel="noopener noreferrer">
                        Install link
                      </a>
                    )}
                    <span class="muted">{afterwards}</span>
                  </p>
                </div>
              </details>
            ))}
          </div>
        </>
      )}
    </Section>
  )
}
