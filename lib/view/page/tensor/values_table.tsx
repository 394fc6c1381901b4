/** The values at the top left of the view as a table: numbers, bits or offsets. */
import { useState } from 'preact/hooks'
import type { WindowAnswer } from '../../protocol.js'
import { ask, type Query } from '../api.js'
import { Awaited, Choice } from '../parts/parts.js'
import { useLoad } from '../parts/use_load.js'
import { numberText } from '../text.js'
import { type Extents, indexText, type PlaneChoice } from './axes.js'
import type { View } from './heat_map.js'

const ROWS = 16
const COLUMNS = 10
const SHOWN = ['values', 'bits', 'offsets'] as const
/** Of quantized blocks: a value is `scale × code + minimum`. */
const SHOWN_OF_BLOCKS = ['values', 'codes', 'scales', 'minimums'] as const
type Shown = (typeof SHOWN | typeof SHOWN_OF_BLOCKS)[number]

interface Props {
  query: Query
  extents: Extents
  view: View
  shape: readonly number[]
  plane: PlaneChoice
}

export function ValuesTable({ query, extents, view, plane }: Props) {
  const [shown, setShown] = useState<Shown>('values')
  const [moved, setMoved] = useState({ view, row: 0, column: 0 })
  const by = moved.view === view ? moved : { row: 0, column: 0 }
  const start = { row: view.rows[0] + by.row, column: view.columns[0] + by.column }
  const rows = [start.row, Math.min(extents.rows, start.row + ROWS)] as const
  const columns = [start.column, Math.min(extents.columns, start.column + COLUMNS)] as const
  const asked = { ...query, rows, columns }
  const found = useLoad(JSON.stringify(asked), (signal) => ask<WindowAnswer>('values', asked, signal))
  const move = (down: number, right: number): void => {
    const row = Math.max(-view.rows[0], by.row + down)
    setMoved({ view, row, column: Math.max(-view.columns[0], by.column + right) })
  }
  return (
    <div class="values">
      <div class="fields">
        <Choice<Shown>
          label="Table shows"
          value={shown}
          names={found.value?.blocks ? SHOWN_OF_BLOCKS : SHOWN}
          onChange={setShown}
        />
        <span class="buttons">
          <button type="button" disabled={rows[0] === 0} onClick={() => move(-ROWS, 0)}>
            Up
          </button>
          <button type="button" disabled={rows[1] === extents.rows} onClick={() => move(ROWS, 0)}>
            Down
          </button>
          <button type="button" disabled={columns[0] === 0} onClick={() => move(0, -COLUMNS)}>
            Left
          </button>
          <button type="button" disabled={columns[1] === extents.columns} onClick={() => move(0, COLUMNS)}>
            Right
          </button>
        </span>
      </div>
      <Awaited loaded={found}>{(answer) => <Table answer={answer} shown={shown} plane={plane} />}</Awaited>
    </div>
  )
}

function Table(props: { answer: WindowAnswer; shown: Shown; plane: PlaneChoice }) {
  const { answer, shown, plane } = props
  const { rows, columns, values, codes, offsets, blocks } = answer
  const width = columns[1] - columns[0]
  const textAt = (at: number): string => {
    if (shown === 'bits') return codes?.[at] ?? '–'
    if (shown === 'offsets') return String(offsets?.[at] ?? '–')
    return numberText(shown === 'values' ? values[at]! : (blocks?.[shown][at] ?? null))
  }
  const moreOf = (at: number): string => {
    if (blocks) return `: ${blocks.scales[at]} × ${blocks.codes[at]} + ${blocks.minimums[at]}`
    return codes ? `, bits 0x${codes[at]}, offset ${offsets?.[at]}` : ''
  }
  return (
    <div class="scroll" tabIndex={0} role="group" aria-label="Table of values">
      <table>
        <thead>
          <tr>
            <td />
            {range(columns).map((column) => (
              <th key={column} scope="col">
                {column}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {range(rows).map((row) => (
            <tr key={row}>
              <th scope="row">{row}</th>
              {range(columns).map((column) => {
                const at = (row - rows[0]) * width + column - columns[0]
                return (
                  <td key={column} title={indexText(plane, row, column) + moreOf(at)}>
                    {textAt(at)}
                  </td>
                )
              })}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  )
}

function range([start, end]: readonly [number, number]): number[] {
  return Array.from({ length: end - start }, (_, at) => start + at)
}
