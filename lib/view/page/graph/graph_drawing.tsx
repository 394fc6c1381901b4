/** The visible part of a graph: boxes with texts when they are near, rows of bars when they are far. */
import { useEffect, useMemo, useRef, useState } from 'preact/hooks'
import type { PlacedFinding } from '../../protocol.js'
import { useWidth } from '../parts/use_width.js'
import { type BoxGraph, boxTexts, type Edge, operatorKind, shapeOfType, widthsOf } from './graph.js'
import { BOX_HEIGHT, type PlacedNodes } from './place_nodes.js'

/** How a node differs from the other graph. */
export type Mark = 'added' | 'removed' | 'changed'

interface Props {
  graph: BoxGraph
  placed: PlacedNodes
  selected: number | undefined
  findings: readonly PlacedFinding[]
  /** Boxes that differ from another graph. */
  marks?: ReadonlyMap<number, Mark>
  onSelect: (box: number) => void
}

/** The visible rectangle: its top left corner, and how many pixels of the graph a pixel of the screen is. */
interface Camera {
  readonly x: number
  readonly y: number
  readonly scale: number
}

/** Boxes that are drawn one by one. */
const MAX_BOXES = 1500
/** Largest scale at which texts are legible. */
const TEXT_SCALE = 2.2
const HEIGHT = 600

export function GraphDrawing(props: Props) {
  const { graph, placed, selected, onSelect } = props
  const frame = useRef<HTMLDivElement>(null)
  const width = useWidth(frame)
  const [camera, setCamera] = useState<Camera>({ x: 0, y: -20, scale: 1 })
  const dragged = useRef<{ x: number; y: number; camera: Camera }>(undefined)
  useEffect(() => {
    if (width > 0) setCamera(firstCamera(graph, placed, width))
  }, [placed, width > 0])
  useEffect(() => {
    if (selected !== undefined && width > 0) setCamera((before) => showing(placed, selected, before, width))
  }, [selected, placed, width])
  const zoom = (factor: number, x = width / 2, y = HEIGHT / 2): void =>
    setCamera((before) => {
      const scale = Math.min(
        Math.max(0.5, before.scale * factor),
        Math.max(4, (placed.height / HEIGHT) * 1.5),
      )
      return { x: before.x + x * (before.scale - scale), y: before.y + y * (before.scale - scale), scale }
    })
  const pan = (x: number, y: number): void =>
    setCamera((before) => ({ ...before, x: before.x + x * before.scale, y: before.y + y * before.scale }))
  return (
    <div class="graph">
      <span class="buttons">
        <button type="button" onClick={() => zoom(0.6)}>
          Zoom in
        </button>
        <button type="button" onClick={() => zoom(1 / 0.6)}>
          Zoom out
        </button>
        <button type="button" onClick={() => setCamera(wholeCamera(placed, width))}>
          Whole
        </button>
      </span>
      <div
        ref={frame}
        class="frame"
        tabIndex={0}
        role="group"
        aria-label="Drawing of the graph; arrow keys move it, plus and minus zoom"
        onWheel={(event) =>
          event.ctrlKey
            ? zoom(event.deltaY > 0 ? 1.2 : 1 / 1.2, event.offsetX, event.offsetY)
            : pan(event.deltaX, event.deltaY)
        }
        onPointerDown={(event) => {
          dragged.current = { x: event.clientX, y: event.clientY, camera }
        }}
        onPointerMove={(event) => {
          const start = dragged.current
          if (!start || event.buttons === 0) return
          const { scale } = start.camera
          setCamera({
            scale,
            x: start.camera.x + (start.x - event.clientX) * scale,
            y: start.camera.y + (start.y - event.clientY) * scale,
          })
        }}
        onPointerUp={() => {
          dragged.current = undefined
        }}
        onKeyDown={(event) => {
          const step = { ArrowLeft: [-80, 0], ArrowRight: [80, 0], ArrowUp: [0, -80], ArrowDown: [0, 80] }[
            event.key
          ]
          if (step) pan(step[0]!, step[1]!)
          else if (event.key === '+') zoom(0.7)
          else if (event.key === '-') zoom(1 / 0.7)
          else return
          event.preventDefault()
        }}
      >
        <Drawing {...props} camera={camera} width={width} onSelect={onSelect} graph={graph} />
      </div>
    </div>
  )
}

function wholeCamera({ width, height }: PlacedNodes, screen: number): Camera {
  const scale = Math.max(1, width / (screen - 20), height / (HEIGHT - 20))
  return { scale, x: width / 2 - (screen * scale) / 2, y: height / 2 - (HEIGHT * scale) / 2 }
}

/** The whole where it is legible, otherwise the top: the first input, for constants may be computed above it. */
function firstCamera(graph: BoxGraph, placed: PlacedNodes, screen: number): Camera {
  const whole = wholeCamera(placed, screen)
  if (whole.scale <= 1.4) return whole
  const inputs = graph.drawn.filter((box) => graph.kindOf(box) === 'input')
  const candidates = inputs.length > 0 ? inputs : graph.drawn
  const top = candidates.reduce(
    (best, box) => (placed.y[box]! < placed.y[best]! ? box : best),
    candidates[0]!,
  )
  return { scale: 1, x: placed.x[top]! - screen / 2, y: placed.y[top]! - BOX_HEIGHT / 2 - 20 }
}

/** The camera itself where it shows the box, otherwise one that has it in the middle. */
function showing({ x, y }: PlacedNodes, box: number, camera: Camera, screen: number): Camera {
  if (Number.isNaN(x[box])) return camera
  const scale = Math.min(camera.scale, 1)
  const [right, down] = [(x[box]! - camera.x) / camera.scale, (y[box]! - camera.y) / camera.scale]
  const isVisible = right > 40 && right < screen - 40 && down > 30 && down < HEIGHT - 30
  if (isVisible && camera.scale <= TEXT_SCALE) return camera
  return { scale, x: x[box]! - (screen * scale) / 2, y: y[box]! - (HEIGHT * scale) / 2 }
}

function Drawing(props: Props & { camera: Camera; width: number }) {
  const { graph, placed, camera, width } = props
  const widths = useMemo(() => widthsOf(graph), [graph])
  const order = useMemo(
    () => graph.drawn.toSorted((one, other) => placed.y[one]! - placed.y[other]!),
    [graph, placed],
  )
  const edgesOf = useMemo(() => edgesByBox(graph), [graph])
  const routeOf = useMemo(() => routesByEdge(graph, placed), [graph, placed])
  const labelled = useMemo(() => firstEdges(graph), [graph])
  const { scale } = camera
  const visible = visibleBoxes(placed, order, widths, camera, width)
  const isFar = visible.length > MAX_BOXES
  const edges = isFar ? [] : [...new Set(visible.flatMap((box) => edgesOf[box]!))]
  const content = isFar ? (
    <path class="far" d={farPath(visible, placed, widths)} />
  ) : (
    <>
      <defs>
        <marker
          id="arrow"
          viewBox="0 0 8 8"
          refX={8}
          refY={4}
          markerWidth={7}
          markerHeight={7}
          orient="auto"
          markerUnits="userSpaceOnUse"
        >
          <path d="M0 0L8 4L0 8z" />
        </marker>
      </defs>
      {edges.map((edge) => (
        <EdgeLine
          key={`${edge.from} ${edge.to} ${edge.value}`}
          {...{ edge, graph, placed }}
          route={routeOf.get(edge)}
          hasText={scale <= TEXT_SCALE && labelled.has(edge)}
        />
      ))}
      {visible.map((box) => (
        <Box key={box} {...props} box={box} boxWidth={widths[box]!} hasText={scale <= TEXT_SCALE} />
      ))}
    </>
  )
  return (
    <svg
      width={width}
      height={HEIGHT}
      viewBox={`${camera.x} ${camera.y} ${width * scale} ${HEIGHT * scale}`}
      role="group"
      aria-label={`Graph of ${graph.columns.operators.length} nodes`}
      data-visible={visible.length}
    >
      {content}
    </svg>
  )
}

function edgesByBox({ boxes, edges }: BoxGraph): Edge[][] {
  const byBox: Edge[][] = Array.from({ length: boxes }, () => [])
  for (const edge of edges) {
    byBox[edge.from]!.push(edge)
    byBox[edge.to]!.push(edge)
  }
  return byBox
}

function routesByEdge({ edges }: BoxGraph, { routes = [] }: PlacedNodes): ReadonlyMap<Edge, Float64Array> {
  return new Map(routes.map((route, at) => [edges[at]!, route]))
}

/** One edge of each value: the shape stands at one of them. */
function firstEdges({ edges }: BoxGraph): ReadonlySet<Edge> {
  const byValue = new Map<number, Edge>()
  for (const edge of edges) if (!byValue.has(edge.value)) byValue.set(edge.value, edge)
  return new Set(byValue.values())
}

function visibleBoxes(
  { x, y }: PlacedNodes,
  order: readonly number[],
  widths: Float64Array,
  camera: Camera,
  width: number,
): number[] {
  const [top, bottom] = [camera.y - BOX_HEIGHT, camera.y + HEIGHT * camera.scale + BOX_HEIGHT]
  const [left, right] = [camera.x, camera.x + width * camera.scale]
  const visible: number[] = []
  for (let at = firstFrom(order, y, top); at < order.length; at++) {
    const box = order[at]!
    if (y[box]! > bottom) break
    if (x[box]! + widths[box]! / 2 >= left && x[box]! - widths[box]! / 2 <= right) visible.push(box)
  }
  return visible
}

/** The first box in the order whose y is not above the top. */
function firstFrom(order: readonly number[], y: Float64Array, top: number): number {
  let [low, high] = [0, order.length]
  while (low < high) {
    const middle = (low + high) >> 1
    if (y[order[middle]!]! < top) low = middle + 1
    else high = middle
  }
  return low
}

/** Boxes of a row that are near each other become one bar. */
function farPath(boxes: readonly number[], { x, y }: PlacedNodes, widths: Float64Array): string {
  const rows = new Map<number, { left: number; right: number }>()
  for (const box of boxes) {
    const row = rows.get(y[box]!) ?? { left: Number.POSITIVE_INFINITY, right: Number.NEGATIVE_INFINITY }
    row.left = Math.min(row.left, x[box]! - widths[box]! / 2)
    row.right = Math.max(row.right, x[box]! + widths[box]! / 2)
    rows.set(y[box]!, row)
  }
  return Array.from(
    rows,
    ([at, { left, right }]) => `M${left} ${at - BOX_HEIGHT / 2}h${right - left}v${BOX_HEIGHT}H${left}z`,
  ).join('')
}

interface EdgeProps {
  edge: Edge
  graph: BoxGraph
  placed: PlacedNodes
  route: Float64Array | undefined
  hasText: boolean
}

/** Pixels below a box at which the shape of its value stands. */
const LABEL_DROP = 22

function EdgeLine({ edge, graph, placed, route, hasText }: EdgeProps) {
  const [x1, x2] = [placed.x[edge.from]!, placed.x[edge.to]!]
  const [y1, y2] = [placed.y[edge.from]! + BOX_HEIGHT / 2, placed.y[edge.to]! - BOX_HEIGHT / 2]
  const bends = route?.slice(2, -2) ?? []
  // Texts stand outside: beside the first bend of a route, or below where straight edges meet at one box.
  const [textX, textY] =
    bends.length > 0
      ? [bends[0]!, bends[1]!]
      : [x1 + (x2 - x1) * Math.min(0.5, LABEL_DROP / (y2 - y1)), y1 + Math.min((y2 - y1) / 2, LABEL_DROP)]
  const isLeft = bends.length > 0 ? textX < x1 - 1 : x2 > x1 + LABEL_DROP
  const shape = shapeOfType(graph.columns.types[edge.value] ?? '')
  return (
    <g class="edge">
      <path d={linePath([x1, y1, ...bends, x2, y2])} marker-end="url(#arrow)" />
      {shape !== undefined && hasText && (
        <text x={textX + (isLeft ? -4 : 4)} y={textY + 4} text-anchor={isLeft ? 'end' : 'start'}>
          {shape}
        </text>
      )}
    </g>
  )
}

/** A smooth line that leaves the first point and reaches the last one vertically. @param points - x and y of each */
function linePath(points: readonly number[]): string {
  let path = `M${points[0]} ${points[1]}`
  for (let at = 2; at < points.length; at += 2) {
    const [x1, y1, x2, y2] = points.slice(at - 2, at + 2)
    const bend = Math.max(12, (y2! - y1!) / 2)
    path += `C${x1} ${y1! + bend} ${x2} ${y2! - bend} ${x2} ${y2}`
  }
  return path
}

/** Pixels of a line of text in a box. */
const LINE_HEIGHT = 15

interface BoxProps extends Props {
  box: number
  boxWidth: number
  hasText: boolean
}

function Box({ graph, placed, selected, findings, marks, onSelect, box, boxWidth, hasText }: BoxProps) {
  const kind = graph.kindOf(box)
  const mark = marks?.get(box)
  const here = findings.filter(({ node }) => node === box && kind === 'node')
  const isError = here.some(({ severity }) => severity === 'error')
  const name = kind === 'node' ? graph.columns.names[box] : kind
  const { title, lines } = boxTexts(graph, box)
  const top = (BOX_HEIGHT - LINE_HEIGHT * (1 + lines.length)) / 2 + 12
  const findingsText = here.length > 0 ? `, ${here.length} findings` : ''
  const label = `${graph.labelOf(box)}${name ? ` ${name}` : ''}${mark ? `, ${mark}` : ''}${findingsText}`
  const place = `translate(${placed.x[box]! - boxWidth / 2} ${placed.y[box]! - BOX_HEIGHT / 2})`
  return (
    <>
      <g
        class={`box ${kind} ${kind === 'node' ? operatorKind(graph.columns.operators[box]!) : ''}`}
        role="button"
        tabindex={0}
        aria-label={label}
        aria-pressed={box === selected}
        data-box={box}
        data-mark={mark}
        transform={place}
        onClick={() => onSelect(box)}
        onKeyDown={(event) => {
          if (event.key === 'Enter' || event.key === ' ') {
            event.preventDefault()
            onSelect(box)
          }
        }}
      >
        <title>{label}</title>
        <rect width={boxWidth} height={BOX_HEIGHT} rx={6} />
        {kind === 'node' && (
          <path class="stripe" d={`M6 0H3Q0 0 0 3V${BOX_HEIGHT - 3}Q0 ${BOX_HEIGHT} 3 ${BOX_HEIGHT}H6z`} />
        )}
        {hasText && (
          <text x={boxWidth / 2} y={top} class="title">
            {title}
          </text>
        )}
        {here.length > 0 && (
          <g class={`finding ${isError ? 'error' : 'warning'}`}>
            <circle cx={boxWidth - 2} cy={2} r={8} />
            <text x={boxWidth - 2} y={6}>
              {isError ? '!' : '?'}
            </text>
          </g>
        )}
      </g>
      {hasText && (
        // Beside the button: its name is short, and these are in the side column once it is chosen.
        <g class="lines" aria-hidden="true" data-lines={box} transform={place}>
          {lines.map((line, at) => (
            <text key={at} x={boxWidth / 2} y={top + LINE_HEIGHT * (at + 1)}>
              {line}
            </text>
          ))}
        </g>
      )}
    </>
  )
}
