/** The tensors of a file in a table of any length, sorted by any column. */
import { useMemo, useState } from 'preact/hooks'
import type { TensorTable } from '../parts/tensors.js'
import { VirtualRows } from '../parts/virtual_rows.js'
import { hrefOf } from '../route.js'
import { bytesText, shapeText } from '../text.js'

const COLUMNS = ['#', 'name', 'dtype', 'shape', 'layout', 'bytes'] as const
type Column = (typeof COLUMNS)[number]

interface Order {
  readonly column: Column
  readonly isDescending: boolean
}

export function TensorList({
  file,
  table,
  rows,
}: {
  file: number
  table: TensorTable
  rows: readonly number[]
}) {
  const [order, setOrder] = useState<Order>({ column: '#', isDescending: false })
  const sorted = useMemo(() => sortRows(table, rows, order), [table, rows, order])
  const turn = (column: Column): void =>
    setOrder({ column, isDescending: column === order.column ? !order.isDescending : column === 'bytes' })
  return (
    <VirtualRows
      label="Tensors"
      count={sorted.length}
      columns="tensors"
      header={COLUMNS.map((column) => (
        <span key={column} role="columnheader" aria-sort={sortOf(order, column)}>
          <button type="button" onClick={() => turn(column)}>
            {column}
            {order.column === column && <span aria-hidden="true">{order.isDescending ? ' ↓' : ' ↑'}</span>}
          </button>
        </span>
      ))}
      row={(at) => <Cells file={file} table={table} index={sorted[at]!} />}
    />
  )
}

function sortOf({ column, isDescending }: Order, of: Column): 'ascending' | 'descending' | 'none' {
  if (column !== of) return 'none'
  return isDescending ? 'descending' : 'ascending'
}

function Cells({ file, table, index }: { file: number; table: TensorTable; index: number }) {
  const { name, dtype, shape, layout, byteLength, hasData } = table
  return (
    <>
      <span role="cell">{index}</span>
      <span role="cell">
        <a href={hrefOf('tensor', { file, tensor: index })}>{name[index] || '(no name)'}</a>
      </span>
      <span role="cell">{dtype[index]}</span>
      <span role="cell">{shapeText(shape[index]!)}</span>
      <span role="cell">{layout[index] ?? '–'}</span>
      <span role="cell">{hasData[index] ? bytesText(byteLength[index]!) : 'no data'}</span>
    </>
  )
}

const byNumbers = new Intl.Collator('en', { numeric: true })

function sortRows(
  table: TensorTable,
  rows: readonly number[],
  { column, isDescending }: Order,
): readonly number[] {
  const direction = isDescending ? -1 : 1
  if (column === '#') return isDescending ? rows.toReversed() : rows
  const textOf: Readonly<Record<'name' | 'dtype' | 'layout', readonly (string | null)[]>> = table
  const numbers = column === 'bytes' ? table.byteLength : column === 'shape' ? table.elements : undefined
  if (numbers) return rows.toSorted((a, b) => direction * ((numbers[a] ?? -1) - (numbers[b] ?? -1)) || a - b)
  const texts = textOf[column as 'name' | 'dtype' | 'layout']
  return rows.toSorted((a, b) => direction * byNumbers.compare(texts[a] ?? '', texts[b] ?? '') || a - b)
}
