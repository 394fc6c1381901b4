/** Cells in rows, one of which is marked. Arrow keys move the mark; borders show where blocks of memory begin. */
import { useMemo } from 'preact/hooks'
import { isLight, paletteColour } from '../colours.js'

export interface GridCell {
  /** Offset in memory. */
  readonly slot: number
  readonly text: string
  /** Place in the palette; undefined for a hole. */
  readonly share: number | undefined
  /** The block of memory that it is in. */
  readonly block: number
}

interface Props {
  label: string
  cells: readonly GridCell[]
  columns: number
  slot: number | undefined
  onSlot: (slot: number | undefined) => void
  onOpen?: (slot: number) => void
}

const HEIGHT = 20
/** Cells of a grid with texts; more would be too small to read, and slow. */
const MAX_TEXTS = 1100

export function CellGrid(props: Props) {
  const { label, cells, columns, slot, onSlot, onOpen } = props
  const width = useMemo(() => cellWidth(cells), [cells])
  const rows = Math.ceil(cells.length / columns)
  const drawn = useMemo(
    () => <Cells cells={cells} columns={columns} width={width} />,
    [cells, columns, width],
  )
  const marked = useMemo(() => cells.findIndex((cell) => cell.slot === slot), [cells, slot])
  const cellAt = (event: MouseEvent & { currentTarget: SVGSVGElement }): GridCell | undefined => {
    const box = event.currentTarget.getBoundingClientRect()
    const column = Math.floor(((event.clientX - box.left) / box.width) * columns)
    const row = Math.floor(((event.clientY - box.top) / box.height) * rows)
    return cells[row * columns + column]
  }
  const press = (event: KeyboardEvent): void => {
    const by = { ArrowLeft: -1, ArrowRight: 1, ArrowUp: -columns, ArrowDown: columns }[event.key]
    if (by === undefined) return
    event.preventDefault()
    const next = cells[marked < 0 ? 0 : marked + by]
    if (next) onSlot(next.slot)
  }
  return (
    <div
      class="scroll"
      tabIndex={0}
      role="group"
      aria-label={`${label}, arrow keys move the mark`}
      onKeyDown={press}
    >
      <svg
        class="grid"
        role="img"
        aria-label={label}
        width={columns * width}
        height={rows * HEIGHT}
        viewBox={`0 0 ${columns * width} ${rows * HEIGHT}`}
        onPointerMove={(event) => {
          if (hasMoved(event)) onSlot(cellAt(event)?.slot)
        }}
        onPointerLeave={(event) => {
          if (hasMoved(event)) onSlot(undefined)
        }}
        onClick={(event) => {
          const cell = cellAt(event)
          if (cell) onOpen?.(cell.slot)
        }}
      >
        {drawn}
        {marked >= 0 && (
          <rect
            class="mark"
            data-slot={slot}
            x={(marked % columns) * width}
            y={Math.floor(marked / columns) * HEIGHT}
            width={width}
            height={HEIGHT}
          />
        )}
      </svg>
    </div>
  )
}

/** Where the pointer was last seen, in pixels of the screen. */
const seen = { x: NaN, y: NaN }

/** False if the page moved under a pointer that rests: browsers send events then too, and those must not move the mark. */
function hasMoved({ screenX: x, screenY: y }: PointerEvent): boolean {
  const moved = x !== seen.x || y !== seen.y
  Object.assign(seen, { x, y })
  return moved
}

function cellWidth(cells: readonly GridCell[]): number {
  if (cells.length > MAX_TEXTS) return 14
  const longest = cells.reduce((most, { text }) => Math.max(most, text.length), 1)
  return Math.max(22, Math.ceil(6.2 * longest) + 6)
}

function Cells({ cells, columns, width }: { cells: readonly GridCell[]; columns: number; width: number }) {
  const hasTexts = width > 14
  return (
    <>
      {cells.map(({ slot, text, share }, at) => {
        const [x, y] = [(at % columns) * width, Math.floor(at / columns) * HEIGHT]
        const fill = share === undefined ? undefined : paletteColour('viridis', share)
        return (
          <g key={slot}>
            <rect
              class={share === undefined ? 'hole' : undefined}
              x={x}
              y={y}
              width={width - 1}
              height={HEIGHT - 1}
              fill={fill}
            />
            {hasTexts && text !== '' && (
              <text
                x={x + width / 2}
                y={y + 14}
                fill={share !== undefined && isLight('viridis', share) ? '#000' : '#fff'}
              >
                {text}
              </text>
            )}
          </g>
        )
      })}
      <path class="border" d={blockBorders(cells, columns, width)} />
    </>
  )
}

/** Lines between neighbours that are in different blocks. */
function blockBorders(cells: readonly GridCell[], columns: number, width: number): string {
  const lines: string[] = []
  for (const [at, { block }] of cells.entries()) {
    const [x, y] = [(at % columns) * width, Math.floor(at / columns) * HEIGHT]
    if (at % columns > 0 && cells[at - 1]!.block !== block) lines.push(`M${x - 0.5} ${y}v${HEIGHT}`)
    if (at >= columns && cells[at - columns]!.block !== block) lines.push(`M${x} ${y - 0.5}h${width}`)
  }
  return lines.join('')
}
