/** Which plane of a tensor is shown: two axes, and an index of every other axis. */
export interface PlaneChoice {
  /** Undefined where the tensor has no such axis. */
  readonly rowAxis: number | undefined
  readonly columnAxis: number | undefined
  readonly fixed: readonly number[]
}

export interface Extents {
  readonly rows: number
  readonly columns: number
}

/** The last two axes at index 0 of the others; of a weight with small last axes, the two largest. */
export function firstPlane(shape: readonly number[]): PlaneChoice {
  const rank = shape.length
  const axes = [...shape.keys()]
  const isSmall = rank > 2 && shape[rank - 1]! * shape[rank - 2]! < 64
  const largest = axes.toSorted((one, other) => shape[other]! - shape[one]! || one - other).slice(0, 2)
  const [rowAxis, columnAxis] = isSmall ? largest.toSorted((one, other) => one - other) : axes.slice(-2)
  const fixed = shape.map(() => 0)
  if (rank >= 2) return { rowAxis, columnAxis, fixed }
  return { rowAxis: undefined, columnAxis: rank === 1 ? 0 : undefined, fixed }
}

export function planeExtents(shape: readonly number[], { rowAxis, columnAxis }: PlaneChoice): Extents {
  const extent = (axis: number | undefined): number => (axis === undefined ? 1 : shape[axis]!)
  return { rows: extent(rowAxis), columns: extent(columnAxis) }
}

/** The index in the tensor of an element of the plane, as text. */
export function indexText(
  { rowAxis, columnAxis, fixed }: PlaneChoice,
  row: string | number,
  column: string | number,
): string {
  return `[${fixed.map((at, axis) => (axis === rowAxis ? row : axis === columnAxis ? column : at)).join(', ')}]`
}

export function AxisFields(props: {
  shape: readonly number[]
  plane: PlaneChoice
  names?: string | undefined
  onChange: (plane: PlaneChoice) => void
}) {
  const { shape, plane, names = '', onChange } = props
  if (shape.length < 2) return null
  const { rowAxis, columnAxis, fixed } = plane
  const nameOf = (axis: number): string => `${names[axis] ?? `axis ${axis}`} (${shape[axis]})`
  const chooseAxis = (which: 'rowAxis' | 'columnAxis', axis: number): void => {
    const other = which === 'rowAxis' ? columnAxis : rowAxis
    // The axis of the other edge: both change places.
    const swapped =
      axis === other ? { rowAxis: columnAxis, columnAxis: rowAxis } : { rowAxis, columnAxis, [which]: axis }
    onChange({ ...swapped, fixed })
  }
  return (
    <div class="fields">
      {(['rowAxis', 'columnAxis'] as const).map((which) => (
        <label key={which} class="field">
          <span>{which === 'rowAxis' ? 'Rows' : 'Columns'}</span>
          <select
            value={plane[which]}
            onChange={(event) => chooseAxis(which, Number(event.currentTarget.value))}
          >
            {shape.map((_, axis) => (
              <option key={axis} value={axis}>
                {nameOf(axis)}
              </option>
            ))}
          </select>
        </label>
      ))}
      {shape.map((extent, axis) => {
        if (axis === rowAxis || axis === columnAxis || extent < 2) return null
        const move = (at: number): void => onChange({ ...plane, fixed: fixed.with(axis, at) })
        return (
          <Slider key={nameOf(axis)} label={nameOf(axis)} most={extent - 1} at={fixed[axis]!} onMove={move} />
        )
      })}
    </div>
  )
}

function Slider({
  label,
  most,
  at,
  onMove,
}: {
  label: string
  most: number
  at: number
  onMove: (at: number) => void
}) {
  const take = (event: { currentTarget: HTMLInputElement }): void => {
    const wanted = Math.floor(Number(event.currentTarget.value))
    onMove(Math.max(0, Math.min(most, Number.isFinite(wanted) ? wanted : 0)))
  }
  return (
    <span class="field">
      <span aria-hidden="true">{label}</span>
      <span>
        <input type="range" aria-label={`${label}, slider`} min={0} max={most} value={at} onInput={take} />
        <input type="number" aria-label={label} min={0} max={most} value={at} onChange={take} />
      </span>
    </span>
  )
}
