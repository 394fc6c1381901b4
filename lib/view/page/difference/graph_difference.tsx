/** The edits of two graphs: a table by node, and both drawings with what differs marked. */
import { useMemo, useState } from 'preact/hooks'
import type { GraphEdit } from '../../../pipeline/diff/graph_edits.js'
import type { GraphColumns } from '../../protocol.js'
import { ask } from '../api.js'
import { boxGraph, placeBoxes, withTypes } from '../graph/graph.js'
import { GraphDrawing, type Mark } from '../graph/graph_drawing.js'
import { Awaited } from '../parts/parts.js'
import { useLoad } from '../parts/use_load.js'
import { countText } from '../text.js'
import { groupEdits, type NodeEdits } from './node_edits.js'

/** Rows of a table or list; the command has them all. */
export const SHOWN = 500

interface Props {
  /** Indices of the files. */
  readonly a: number
  readonly b: number
  readonly names: readonly [string, string]
  readonly edits: readonly GraphEdit[]
}

export function GraphDifference({ a, b, names, edits }: Props) {
  const { nodes, others } = useMemo(() => groupEdits(edits), [edits])
  const [selected, setSelected] = useState<string>()
  const main = useMemo(() => nodes.filter(({ graph }) => graph === ''), [nodes])
  return (
    <>
      {main.length > 0 && (
        <section aria-label="Graphs" class="both">
          {([a, b] as const).map((file, side) => (
            <Drawing
              key={`${side} ${file}`}
              file={file}
              title={names[side]!}
              edits={main.filter(({ kind }) => kind !== (side === 0 ? 'added' : 'removed'))}
              selected={selected}
              onSelect={setSelected}
            />
          ))}
        </section>
      )}
      {nodes.length > 0 && (
        <section aria-label="Changed nodes">
          <h2>Changed nodes</h2>
          <NodeTable nodes={nodes} selected={selected} onSelect={setSelected} />
        </section>
      )}
      {others.length > 0 && (
        <section aria-label="Other edits of the graph">
          <h2>Other edits of the graph</h2>
          <ul>
            {others.slice(0, SHOWN).map((text, at) => (
              <li key={at}>{text}</li>
            ))}
          </ul>
          <More all={others.length} />
        </section>
      )}
    </>
  )
}

function More({ all }: { all: number }) {
  return all > SHOWN ? <p class="quiet">{countText(all - SHOWN)} more</p> : null
}

interface Selection {
  readonly selected: string | undefined
  readonly onSelect: (name: string) => void
}

function NodeTable({ nodes, selected, onSelect }: Selection & { nodes: readonly NodeEdits[] }) {
  return (
    <>
      <div class="scroll" tabIndex={0} role="group" aria-label="Changed nodes">
        <table class="texts nodes">
          <thead>
            <tr>
              {['node', 'operator', 'changes'].map((title) => (
                <th key={title} scope="col">
                  {title}
                </th>
              ))}
            </tr>
          </thead>
          <tbody>
            {nodes.slice(0, SHOWN).map(({ kind, graph, name, operator, changes }, at) => (
              <tr key={at} aria-current={graph === '' && name === selected ? 'true' : undefined}>
                <th scope="row">
                  {graph === '' ? (
                    <button type="button" class="plain" onClick={() => onSelect(name)}>
                      {name}
                    </button>
                  ) : (
                    `${graph}: ${name}`
                  )}
                </th>
                <td>
                  {kind !== 'changed' && `${kind} `}
                  {operator}
                </td>
                <td>{changes.join(', ')}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      <More all={nodes.length} />
    </>
  )
}

interface DrawingProps extends Selection {
  readonly file: number
  readonly title: string
  readonly edits: readonly NodeEdits[]
}

function Drawing({ file, title, edits, selected, onSelect }: DrawingProps) {
  const loaded = useLoad(`both ${file}`, async (signal) => {
    const graph = boxGraph(await ask<GraphColumns>('graph', { file, graph: 0 }, signal))
    const placed = await placeBoxes(graph, signal)
    const types = await ask<Readonly<Record<string, string>>>('types', { file, graph: 0 }, signal)
    return { graph: withTypes(graph, types), placed, boxes: boxesByName(graph.columns) }
  })
  return (
    <div>
      <h2>{title}</h2>
      <Awaited loaded={loaded}>
        {({ graph, placed, boxes }) => {
          const marks = new Map(
            edits.flatMap(({ name, kind }): (readonly [number, Mark])[] => {
              const box = boxes.get(name)
              return box === undefined ? [] : [[box, kind]]
            }),
          )
          return (
            <GraphDrawing
              graph={graph}
              placed={placed}
              marks={marks}
              findings={[]}
              selected={selected === undefined ? undefined : boxes.get(selected)}
              onSelect={(box) => {
                if (graph.kindOf(box) === 'node') onSelect(nameOf(graph.columns, box))
              }}
            />
          )
        }}
      </Awaited>
    </div>
  )
}

/** As edits name a node: by its name, or by its first output. */
function nameOf({ names, outputs, values }: GraphColumns, node: number): string {
  return names[node] || (values[outputs[node]![0] ?? -1] ?? '')
}

/** The nodes by name and by first output; a node whose name was changed is found by the latter. */
function boxesByName(columns: GraphColumns): ReadonlyMap<string, number> {
  const boxes = new Map<string, number>()
  for (const [node, outputs] of columns.outputs.entries()) {
    const output = columns.values[outputs[0] ?? -1]
    if (output !== undefined) boxes.set(output, node)
  }
  for (const node of columns.names.keys()) boxes.set(nameOf(columns, node), node)
  return boxes
}
