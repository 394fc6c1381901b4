/** The way from a tensor to the others: the ones before and behind it, and a list of all beside it. */
import { useMemo, useState } from 'preact/hooks'
import { TextField } from '../parts/parts.js'
import { matchingRows, type TensorTable } from '../parts/tensors.js'
import { VirtualRows } from '../parts/virtual_rows.js'
import { hrefOf } from '../route.js'
import { countText, shapeText } from '../text.js'

interface Props {
  file: number
  tensor: number
  /** What is loaded of it so far. */
  table: TensorTable | undefined
}

/** @param total - tensors of the file */
export function Neighbours({ file, tensor, table, total }: Props & { total: number }) {
  const link = (at: number, arrow: (name: string) => string) =>
    at < 0 || at >= total ? (
      <span />
    ) : (
      <a href={hrefOf('tensor', { file, tensor: at })}>{arrow(table?.name[at] ?? `tensor ${at}`)}</a>
    )
  return (
    <nav class="neighbours" aria-label="Neighbouring tensors">
      {link(tensor - 1, (name) => `← ${name}`)}
      <span class="quiet">
        {countText(tensor + 1)} of {countText(total)}
      </span>
      {link(tensor + 1, (name) => `${name} →`)}
    </nav>
  )
}

export function TensorNames({ file, tensor, table }: Props) {
  const [filter, setFilter] = useState('')
  const rows = useMemo(() => (table ? matchingRows(table, filter) : []), [table, filter])
  if (!table) return null
  return (
    <section class="names" aria-label="Tensors">
      <TextField
        label="Search names (press /)"
        value={filter}
        onChange={setFilter}
        width={20}
        isEager
        isSearch
      />
      <VirtualRows
        label="Tensors"
        count={rows.length}
        columns="names"
        header={<span role="columnheader">name</span>}
        shown={rows.indexOf(tensor)}
        row={(at) => {
          const index = rows[at]!
          const name = table.name[index] || '(no name)'
          return (
            <span role="cell">
              <a
                href={hrefOf('tensor', { file, tensor: index })}
                title={`${name}: ${table.dtype[index]}, ${shapeText(table.shape[index]!)}`}
                aria-current={index === tensor ? 'page' : undefined}
              >
                {name}
              </a>
            </span>
          )
        }}
      />
    </section>
  )
}
