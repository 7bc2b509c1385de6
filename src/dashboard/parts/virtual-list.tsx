/**
 * A grid of which only the visible rows exist: ten thousand rows cost as much as forty. The selection is an item, not a position, so it
 * stays when rows are added. A scrolled list keeps its position when rows are added above it.
 */
import type { ComponentChildren, JSX } from 'preact'
import { Component } from 'preact'
import { useEffect, useLayoutEffect, useMemo, useRef, useState } from 'preact/hooks'

export interface VirtualListProps<T> {
  readonly items: readonly T[]
  readonly keyOf: (item: T) => string
  readonly label: string
  readonly header: ComponentChildren
  /** Cells of one row. */
  readonly cells: (item: T) => ComponentChildren
  readonly rowClass?: (item: T) => string
  /** Key of the selected item; empty: none. */
  readonly selected: string
  readonly onSelect: (key: string) => void
  readonly onOpen: (item: T) => void
  /** The last row is shown. */
  readonly onEnd?: () => void
  readonly empty: ComponentChildren
  readonly className: string
}

const OVERSCAN = 6
const FIRST_ROW_PX = 32

export const VirtualList = <T,>(props: VirtualListProps<T>): JSX.Element => {
  const { items, keyOf, label, header, cells, rowClass, selected, onSelect, onOpen, onEnd, empty, className } = props
  const box = useRef<HTMLDivElement>(null)
  // Ten thousand keys are compared when the list or the selection changes, not on every scroll event.
  const selectedAt = useMemo(
    () => (selected === '' ? -1 : items.findIndex((item) => keyOf(item) === selected)),
    [items, selected],
  )
  const [rowPx, setRowPx] = useState(FIRST_ROW_PX)
  const [view, setView] = useState({ top: 0, height: 900 })
  const anchor = useRef<{ key: string; offset: number } | undefined>(undefined)

  useLayoutEffect(() => {
    const element = box.current
    if (element === null) return undefined
    const measure = (): void => {
      const row = element.querySelector<HTMLElement>('.vl-row')
      if (row !== null && Math.abs(row.offsetHeight - rowPx) > 0.5) setRowPx(row.offsetHeight)
      setView({ top: element.scrollTop, height: element.clientHeight })
    }
    measure()
    const observer = new ResizeObserver(measure)
    observer.observe(element)
    return () => observer.disconnect()
  }, [rowPx, items.length === 0])

  // Keeps the topmost row in place.
  useLayoutEffect(() => {
    const element = box.current
    const held = anchor.current
    if (element === null || held === undefined || element.scrollTop === 0) return
    const at = items.findIndex((item) => keyOf(item) === held.key)
    const top = at * rowPx + held.offset
    if (at !== -1 && Math.abs(top - element.scrollTop) >= 1) element.scrollTop = top
  }, [items, rowPx])

  const scrolled = (): void => {
    const element = box.current
    if (element === null) return
    const top = element.scrollTop
    const first = items[Math.floor(top / rowPx)]
    anchor.current = first === undefined || top === 0 ? undefined : { key: keyOf(first), offset: top % rowPx }
    setView({ top, height: element.clientHeight })
  }

  useEffect(() => {
    const element = box.current
    if (element === null || selectedAt === -1) return
    const [top, bottom] = [selectedAt * rowPx, (selectedAt + 1) * rowPx]
    const head = element.querySelector<HTMLElement>('.vl-head')?.offsetHeight ?? 0
    if (top < element.scrollTop) element.scrollTop = top
    else if (bottom + head > element.scrollTop + element.clientHeight) element.scrollTop = bottom + head - element.clientHeight
  }, [selected, rowPx])

  const pressed = (event: KeyboardEvent): void => {
    const steps: Readonly<Record<string, number>> = {
      ArrowDown: 1,
      ArrowUp: -1,
      PageDown: Math.floor(view.height / rowPx) - 1,
      PageUp: 1 - Math.floor(view.height / rowPx),
      Home: -items.length,
      End: items.length,
    }
    const step = steps[event.key]
    const item = items[selectedAt]
    if (step !== undefined) {
      event.preventDefault()
      const next = items[Math.min(Math.max(selectedAt + step, 0), items.length - 1)]
      if (next !== undefined) onSelect(keyOf(next))
    } else if (event.key === 'Enter' && event.target === box.current && item !== undefined) {
      event.preventDefault()
      onOpen(item)
    }
  }

  const first = Math.max(0, Math.floor(view.top / rowPx) - OVERSCAN)
  const last = Math.min(items.length, Math.ceil((view.top + view.height) / rowPx) + OVERSCAN)
  useEffect(() => {
    if (last === items.length) onEnd?.()
  }, [last, items])
  const isSelectedShown = selectedAt >= first && selectedAt < last
  return (
    <div
      ref={box}
      class={`vl ${className}`}
      role="grid"
      aria-label={label}
      aria-rowcount={items.length + 1}
      aria-activedescendant={isSelectedShown ? rowId(selected) : undefined}
      tabIndex={0}
      onScroll={scrolled}
      onKeyDown={pressed}
    >
      <div class="vl-head" role="rowgroup">
        <div class="vl-columns" role="row" aria-rowindex={1}>
          {header}
        </div>
      </div>
      {items.length === 0 ? (
        <div role="rowgroup">
          <div role="row">
            <div role="gridcell">{empty}</div>
          </div>
        </div>
      ) : (
        <div class="vl-body" role="rowgroup" style={{ height: `${items.length * rowPx}px` }}>
          <div class="vl-window" role="presentation" style={{ transform: `translateY(${first * rowPx}px)` }}>
            {items.slice(first, last).map((item, index) => {
              const key = keyOf(item)
              return (
                <div
                  key={key}
                  id={rowId(key)}
                  class={`vl-row vl-columns ${rowClass?.(item) ?? ''}`}
                  role="row"
                  aria-rowindex={first + index + 2}
                  aria-selected={key === selected}
                  onMouseDown={() => onSelect(key)}
                  onClick={(event: MouseEvent) => {
                    if (!(event.target instanceof Element) || event.target.closest('a, button, label, input') === null)
                      onOpen(item)
                  }}
                >
                  <Cells item={item} cells={cells} />
                </div>
              )
            })}
          </div>
        </div>
      )}
    </div>
  )
}

interface CellsProps<T> {
  readonly item: T
  readonly cells: (item: T) => ComponentChildren
}

/** Renders cells again only if their item changed: in a live list these are the new rows. */
class Cells<T> extends Component<CellsProps<T>> {
  override shouldComponentUpdate(next: CellsProps<T>): boolean {
    return next.item !== this.props.item || next.cells !== this.props.cells
  }

  override render(): ComponentChildren {
    return this.props.cells(this.props.item)
  }
}

/** The id of an element: only letters and digits, for any key. */
const rowId = (key: string): string =>
  `row-${Array.from(key, (one) => (/[\w-]/.test(one) ? one : `_${one.codePointAt(0)}`)).join('')}`
