/** Replays a captured call, unchanged or with other parameters. A call that does more than read is confirmed first. */
import type { JSX } from 'preact'
import { useState } from 'preact/hooks'
import type { CallDetail } from '../../observe/capture/captured.ts'
import { memberIn, readJson, writeJson } from '../../values/json-tree.ts'
import { ApiError, askText } from '../page/api.ts'
import { useLoad } from '../page/load.ts'
import { encoded, go, pathTo } from '../page/route.ts'
import { ArgumentsEditor } from './arguments-editor.tsx'
import { Banner, Button, Dialog, Line } from './basics.tsx'
import { ResultView } from './result-view.tsx'

interface Tools {
  readonly tools?: readonly { readonly name: string; readonly definition: { readonly inputSchema?: unknown } }[]
}

export const ReplayDialog = ({
  detail,
  isEdit,
  onClose,
}: {
  readonly detail: CallDetail
  readonly isEdit: boolean
  readonly onClose: () => void
}): JSX.Element => {
  const { id, name, method } = detail
  const isTool = method === 'tools/call'
  const { data, error: noTools } = useLoad<Tools>(isTool && isEdit ? `/tools?query=${encoded(name ?? '')}` : '')
  const schema = data?.tools?.find((tool) => tool.name === name)?.definition.inputSchema
  const [args, setArgs] = useState<string | undefined>(undefined)
  const [state, setState] = useState<
    { kind: 'idle' | 'busy' } | { kind: 'end'; text: string } | { kind: 'confirm' | 'refused'; message: string }
  >({ kind: 'idle' })
  const edited = (json: string | undefined): void => {
    setArgs(json)
    // What was asked about other arguments is asked again.
    setState((before) => (before.kind === 'busy' ? before : { kind: 'idle' }))
  }
  const params = paramsWith(detail, isTool ? args : undefined)
  const send = async (isConfirmed: boolean): Promise<void> => {
    setState({ kind: 'busy' })
    try {
      const other = isEdit && isTool ? `,"params":${params}` : ''
      const text = await askText('POST', '/replay', `{"id":${id}${other}${isConfirmed ? ',"confirm":true' : ''}}`)
      const call = Number(/^\{"kind":"result","call":(\d+)/.exec(text)?.[1] ?? 0)
      if (call > 0) {
        onClose()
        go(pathTo('calls', String(call)))
      } else setState({ kind: 'end', text })
    } catch (error) {
      if (!(error instanceof ApiError)) throw error
      setState({ kind: error.code === 'confirm' ? 'confirm' : 'refused', message: error.message })
    }
  }
  const isReady = !isEdit || !isTool || data !== undefined || noTools !== undefined
  return (
    <Dialog title={isEdit ? 'Edit and replay' : 'Replay'} onClose={onClose}>
      <p class="muted">
        <Line text={name ?? method} /> is called again as principal local. All limits and policies apply.
      </p>
      {isEdit && isTool && isReady && <ArgumentsEditor schema={schema} initial={argumentsOf(detail)} onChange={edited} />}
      {state.kind === 'end' && <ResultView text={state.text} />}
      <div class="dialog-actions">
        {state.kind === 'confirm' && <Banner tone="notice" text={state.message} />}
        {state.kind === 'refused' && <Banner text={state.message} />}
        {state.kind === 'confirm' ? (
          <Button tone="trouble" onClick={() => void send(true)}>
            Call it again anyway
          </Button>
        ) : (
          <Button
            tone="accent"
            disabled={state.kind === 'busy' || (isEdit && isTool && args === undefined)}
            onClick={() => void send(false)}
          >
            {state.kind === 'busy' ? 'Waiting for the answer …' : 'Send'}
          </Button>
        )}
      </div>
    </Dialog>
  )
}

/** The captured parameters. */
const membersOf = ({ request }: Pick<CallDetail, 'request'>) => {
  const params = request?.text === undefined ? undefined : memberIn(readJson(request.text), 'params')
  return params?.kind === 'object' ? params.members : undefined
}

/** The captured parameters as JSON, without `_meta`, which belongs to one exchange. */
export const paramsOf = (detail: Pick<CallDetail, 'request'>): string | undefined => {
  const members = membersOf(detail)
  return members && writeJson({ kind: 'object', members: members.filter(([key]) => key !== '_meta') })
}

const argumentsOf = (detail: CallDetail): string => {
  const found = membersOf(detail)?.find(([key]) => key === 'arguments')?.[1]
  return found === undefined ? '{}' : writeJson(found)
}

/** The captured parameters with other arguments. */
const paramsWith = (detail: CallDetail, args: string | undefined): string => {
  const members = (membersOf(detail) ?? [])
    .filter(([key]) => key !== '_meta' && key !== 'arguments')
    .map(([key, value]) => `${JSON.stringify(key)}:${writeJson(value)}`)
  return `{${[...members, `"arguments":${args ?? argumentsOf(detail)}`].join(',')}}`
}
