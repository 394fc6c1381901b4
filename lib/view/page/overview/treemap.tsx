/** Sizes by the parts of names: `layers.0.attn.weight` lies in `layers`, `layers.0` and `layers.0.attn`. */
import { type HierarchyRectangularNode, hierarchy, treemap, treemapSquarify } from 'd3-hierarchy'
import { useMemo, useRef, useState } from 'preact/hooks'
import { KIND_COLOURS } from '../colours.js'
import type { TensorTable } from '../parts/tensors.js'
import { useWidth } from '../parts/use_width.js'
import { hrefOf } from '../route.js'
import { bytesText, countText } from '../text.js'

/** A part of names, or a tensor. */
interface Branch {
  readonly label: string
  /** The start of the names in it, with its separator. */
  readonly prefix: string
  /** -1 for a part of names. */
  readonly index: number
  readonly bytes: number
  readonly tensors: number
  readonly children?: readonly Branch[]
}

const HEIGHT = 120
/** Boxes of one drawing; the smallest are left out. */
const MAX_BOXES = 300

/** Fewer tensors are seen at once in the table. */
const LEAST_TENSORS = 4

/** Whether boxes show what the table does not. */
export function saysSomething({ byteLength }: TensorTable): boolean {
  return byteLength.filter((bytes) => (bytes ?? 0) > 0).length >= LEAST_TENSORS
}

export function Treemap(props: { file: number; table: TensorTable; onPrefix: (prefix: string) => void }) {
  const { file, table, onPrefix } = props
  const [prefix, setPrefix] = useState('')
  const branch = useMemo(() => branchOf(table, prefix), [table, prefix])
  const go = (next: string): void => {
    setPrefix(next)
    onPrefix(next)
  }
  return (
    <div class="treemap">
      <p class="path">
        <button type="button" onClick={() => go('')} disabled={prefix === ''}>
          all
        </button>
        {partsOf(prefix).map(([label, whole]) => (
          <button key={whole} type="button" onClick={() => go(whole)}>
            {label}
          </button>
        ))}
        <span class="quiet">
          {countText(branch.tensors)} tensors, {bytesText(branch.bytes)}
        </span>
      </p>
      <Boxes branch={branch} file={file} onPrefix={go} />
    </div>
  )
}

function Boxes({
  branch,
  file,
  onPrefix,
}: {
  branch: Branch
  file: number
  onPrefix: (prefix: string) => void
}) {
  const svg = useRef<SVGSVGElement>(null)
  const width = useWidth(svg)
  const boxes = useMemo(() => placeBoxes(branch, width), [branch, width])
  return (
    <svg ref={svg} height={HEIGHT} role="group" aria-label="Sizes by name prefix">
      {boxes.map((box, at) => {
        const { label, prefix, index, bytes, tensors } = box.data
        const title = `${label}: ${bytesText(bytes)}${index < 0 ? `, ${countText(tensors)} tensors` : ''}`
        const content = (
          <>
            <title>{title}</title>
            <Box box={box} colour={KIND_COLOURS[at % KIND_COLOURS.length]!} />
          </>
        )
        if (index >= 0)
          return (
            <a key={prefix} href={hrefOf('tensor', { file, tensor: index })}>
              {content}
            </a>
          )
        const open = (event: Event): void => {
          event.preventDefault()
          onPrefix(prefix)
        }
        const press = (event: KeyboardEvent): void => {
          if (event.key === 'Enter' || event.key === ' ') open(event)
        }
        return (
          <g key={prefix} role="button" tabindex={0} onClick={open} onKeyDown={press}>
            {content}
          </g>
        )
      })}
    </svg>
  )
}

/** Pixels of a letter. */
const LETTER = 7.5

function Box(props: { box: HierarchyRectangularNode<Branch>; colour: string }) {
  const { x0, y0, x1, y1, data } = props.box
  const letters = Math.floor((x1 - x0 - 10) / LETTER)
  const hasText = letters >= 3 && y1 - y0 >= 18
  const label = data.label.length <= letters ? data.label : `${data.label.slice(0, letters - 1)}…`
  return (
    <>
      <rect
        x={x0}
        y={y0}
        width={Math.max(0, x1 - x0)}
        height={Math.max(0, y1 - y0)}
        fill={props.colour}
        rx={3}
      />
      {hasText && (
        <text x={x0 + 6} y={y0 + 15} aria-hidden="true">
          {label}
        </text>
      )}
      {hasText && y1 - y0 >= 36 && (
        <text x={x0 + 6} y={y0 + 31} class="size" aria-hidden="true">
          {bytesText(data.bytes)}
        </text>
      )}
    </>
  )
}

function placeBoxes(branch: Branch, width: number): HierarchyRectangularNode<Branch>[] {
  const children = (branch.children ?? [])
    .filter(({ bytes }) => bytes > 0)
    .toSorted((one, other) => other.bytes - one.bytes)
    .slice(0, MAX_BOXES)
  const root = hierarchy<Branch>({ ...branch, children }).sum((each) => (each.children ? 0 : each.bytes))
  return treemap<Branch>().tile(treemapSquarify).size([width, HEIGHT]).paddingInner(2)(root).children ?? []
}

const SEPARATORS = /[./:]/

/** The parts of the names that start with a prefix, or the tensors themselves. */
function branchOf({ name, byteLength }: TensorTable, prefix: string): Branch {
  const parts = new Map<string, { bytes: number; tensors: number; index: number; label: string }>()
  let [bytes, tensors] = [0, 0]
  for (const [index, each] of name.entries()) {
    if (!each.startsWith(prefix)) continue
    const rest = each.slice(prefix.length)
    const end = rest.search(SEPARATORS)
    const own = end < 0 ? rest : rest.slice(0, end + 1)
    const key = end < 0 ? `${prefix}${rest}#${index}` : `${prefix}${own}`
    const label = labelOf(prefix, own)
    const part = parts.get(key) ?? { bytes: 0, tensors: 0, index: end < 0 ? index : -1, label }
    part.bytes += byteLength[index] ?? 0
    part.tensors++
    parts.set(key, part)
    bytes += byteLength[index] ?? 0
    tensors++
  }
  const children = Array.from(parts, ([key, part]): Branch => ({ ...part, prefix: key }))
  // A part alone is opened at once: all names may start with it.
  const [only] = children
  if (children.length === 1 && only!.index < 0)
    return branchOf({ name, byteLength } as TensorTable, only!.prefix)
  return { label: prefix, prefix, index: -1, bytes, tensors, children }
}

/** A number alone says nothing: `0.` in `layers.` is `layers.0`. */
function labelOf(prefix: string, own: string): string {
  const text = own.replace(/[./:]$/, '')
  if (!/^\d+$/.test(text)) return text || own
  return `${/([^./:]*[./:])$/.exec(prefix)?.[1] ?? ''}${text}`
}

/** `layers.0.` is `layers.` and `layers.0.`. */
function partsOf(prefix: string): [label: string, whole: string][] {
  const parts: [string, string][] = []
  for (let at = 0; at < prefix.length; ) {
    const end = at + prefix.slice(at).search(SEPARATORS) + 1
    if (end <= at) break
    parts.push([prefix.slice(at, end), prefix.slice(0, end)])
    at = end
  }
  return parts
}
