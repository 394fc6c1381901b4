/** A list of any length of which only the visible rows are in the document. */
import {
  elementScroll,
  observeElementOffset,
  observeElementRect,
  Virtualizer,
  type VirtualizerOptions,
} from '@tanstack/virtual-core'
import type { ComponentChildren } from 'preact'
import { useEffect, useLayoutEffect, useReducer, useRef, useState } from 'preact/hooks'

type Rows = Virtualizer<HTMLDivElement, HTMLDivElement>

/** Pixels; as in the style sheet. */
export const ROW_HEIGHT = 30

function useVirtualizer(count: number, scroller: { current: HTMLDivElement | null }): Rows {
  const [, draw] = useReducer((turn: number) => turn + 1, 0)
  const options: VirtualizerOptions<HTMLDivElement, HTMLDivElement> = {
    count,
    getScrollElement: () => scroller.current,
    estimateSize: () => ROW_HEIGHT,
    scrollToFn: elementScroll,
    observeElementRect,
    observeElementOffset,
    overscan: 8,
    onChange: () => draw(0),
  }
  const [virtualizer] = useState<Rows>(() => new Virtualizer(options))
  virtualizer.setOptions(options)
  useLayoutEffect(() => virtualizer._didMount(), [virtualizer])
  useLayoutEffect(() => virtualizer._willUpdate())
  return virtualizer
}

/** Rows in a table whose header stays; `row` makes the cells of a row. */
export function VirtualRows(props: {
  label: string
  count: number
  columns: string
  header: ComponentChildren
  row: (at: number) => ComponentChildren
  /** A row to scroll to when it changes. */
  shown?: number | undefined
}) {
  const scroller = useRef<HTMLDivElement>(null)
  const virtualizer = useVirtualizer(props.count, scroller)
  useEffect(() => {
    if (props.shown !== undefined && props.shown >= 0)
      virtualizer.scrollToIndex(props.shown, { align: 'center' })
  }, [props.shown, virtualizer])
  return (
    <div class="table" role="table" aria-label={props.label} aria-rowcount={props.count + 1}>
      <div class="rows" ref={scroller} tabIndex={0} role="rowgroup">
        <div class="header row" role="row" aria-rowindex={1} data-columns={props.columns}>
          {props.header}
        </div>
        <div class="body" role="presentation" style={{ height: `${virtualizer.getTotalSize()}px` }}>
          {virtualizer.getVirtualItems().map(({ index, start }) => (
            <div
              key={index}
              class="row"
              role="row"
              aria-rowindex={index + 2}
              data-columns={props.columns}
              style={{ transform: `translateY(${start}px)` }}
            >
              {props.row(index)}
            </div>
          ))}
        </div>
      </div>
    </div>
  )
}
