/** The graphs of a model: a drawing, a list of the nodes, and the chosen node with its attributes and values. */
import { useEffect, useMemo, useState } from 'preact/hooks'
import type { FileSummary, GraphColumns, GraphEntry, NodeFacts, PlacedFinding } from '../../protocol.js'
import { ask } from '../api.js'
import { Awaited, Facts, TextField } from '../parts/parts.js'
import { useLoad } from '../parts/use_load.js'
import { VirtualRows } from '../parts/virtual_rows.js'
import { hrefOf, numberOf, replaceRoute } from '../route.js'
import { countText, nameFilter } from '../text.js'
import { type BoxGraph, boxGraph, placeBoxes, withTypes } from './graph.js'
import { GraphDrawing } from './graph_drawing.js'

export function GraphPage({ file, query }: { file: number; query: URLSearchParams }) {
  const graphs = useLoad(`graphs ${file}`, (signal) => ask<readonly GraphEntry[]>('graphs', { file }, signal))
  const index = numberOf(query, 'graph')
  const columns = useLoad(`graph ${file} ${index}`, async (signal) => ({
    index,
    graph: boxGraph(await ask<GraphColumns>('graph', { file, graph: index }, signal)),
  }))
  return (
    <Awaited loaded={graphs}>
      {(all) => (
        <>
          {all.length > 1 && <GraphChoice all={all} file={file} index={index} />}
          <Awaited loaded={columns}>
            {(found) => (
              <GraphView
                key={found.index}
                file={file}
                index={found.index}
                graph={found.graph}
                first={query.has('node') ? numberOf(query, 'node') : undefined}
              />
            )}
          </Awaited>
        </>
      )}
    </Awaited>
  )
}

function GraphChoice({ all, file, index }: { all: readonly GraphEntry[]; file: number; index: number }) {
  return (
    <label class="field">
      <span>Graph</span>
      <select
        value={index}
        onChange={(event) => {
          location.hash = hrefOf('graph', { file, graph: event.currentTarget.value })
        }}
      >
        {all.map(({ path, nodes }, at) => (
          <option key={path} value={at}>
            {path || 'main'}: {countText(nodes)} nodes
          </option>
        ))}
      </select>
    </label>
  )
}

interface ViewProps {
  file: number
  index: number
  graph: BoxGraph
}

/** @param first - the box that the address names; one that does not exist is ignored */
function GraphView({ file, index, graph, first }: ViewProps & { first: number | undefined }) {
  const [selected, setSelected] = useState(first !== undefined && first < graph.boxes ? first : undefined)
  useEffect(() => replaceRoute('graph', { file, graph: index, node: selected }), [selected])
  const placed = useLoad(`${file} ${index}`, (signal) => placeBoxes(graph, signal))
  // What takes the server seconds for large graphs is asked for once the boxes are there.
  const later = (what: string): string | undefined => (placed.value ? `${what} ${file} ${index}` : undefined)
  const types = useLoad(later('types'), (signal) =>
    ask<Readonly<Record<string, string>>>('types', { file, graph: index }, signal),
  )
  const typed = useMemo(() => (types.value ? withTypes(graph, types.value) : graph), [graph, types.value])
  const findings = useLoad(later('findings'), (signal) =>
    ask<readonly PlacedFinding[]>('findings', { file }, signal),
  )
  const here = (findings.value ?? []).filter((finding) => finding.graph === index)
  return (
    <div class="graph-page">
      <section aria-label="Drawing">
        <FindNode graph={graph} onSelect={setSelected} />
        <Awaited loaded={placed}>
          {(found) => (
            <GraphDrawing
              graph={typed}
              placed={found}
              selected={selected}
              findings={here}
              onSelect={setSelected}
            />
          )}
        </Awaited>
      </section>
      <section aria-label={selected === undefined ? 'Model' : 'Chosen node'} class="chosen">
        {selected === undefined ? (
          <WholeModel file={file} />
        ) : (
          <ChosenBox
            file={file}
            index={index}
            graph={typed}
            box={selected}
            findings={here}
            onSelect={setSelected}
          />
        )}
      </section>
      <NodeList graph={typed} selected={selected} onSelect={setSelected} />
      <Awaited loaded={findings}>
        {(found) => <Findings findings={found} onSelect={setSelected} index={index} />}
      </Awaited>
    </div>
  )
}

/** Goes to one node after the other whose operator or name contains a text. */
function FindNode({ graph, onSelect }: { graph: BoxGraph; onSelect: (box: number) => void }) {
  const [text, setText] = useState('')
  const [at, setAt] = useState(-1)
  const rows = useMemo(() => (text === '' ? [] : matchingNodes(graph, text)), [graph, text])
  const next = (): void => {
    if (rows.length === 0) return
    const to = (at + 1) % rows.length
    setAt(to)
    onSelect(rows[to]!)
  }
  return (
    <div class="fields">
      <TextField
        label="Find a node (press /, then Enter)"
        value={text}
        width={28}
        onChange={(wanted) => {
          setText(wanted)
          setAt(-1)
        }}
        isEager
        isSearch
        onEnter={next}
      />
      <p class="quiet" role="status">
        {text !== '' && `${at < 0 ? '' : `${countText(at + 1)} of `}${countText(rows.length)} found`}
      </p>
    </div>
  )
}

function matchingNodes({ columns: { names, operators } }: BoxGraph, filter: string): number[] {
  const matches = nameFilter(filter)
  return [...operators.keys()].filter((node) => matches(operators[node]!) || matches(names[node]!))
}

/** What the model says of itself, until a box is chosen. */
function WholeModel({ file }: { file: number }) {
  const summary = useLoad(`summary ${file}`, (signal) => ask<FileSummary>('summary', { file }, signal))
  return (
    <>
      <h2>Model</h2>
      <Awaited loaded={summary}>
        {({ facts, operators }) => {
          const isEnd = ([name]: readonly [string, string]): boolean => name === 'input' || name === 'output'
          return (
            <>
              <Facts facts={facts.filter(isEnd)} />
              <h3>Operators</h3>
              <Facts facts={operators.map(([name, count]) => [name, countText(count)] as const)} />
              <h3>Metadata</h3>
              <Facts facts={facts.filter((fact) => !isEnd(fact))} />
            </>
          )
        }}
      </Awaited>
      <p class="quiet">Choose a box, or a node of the list.</p>
    </>
  )
}

function NodeList({
  graph,
  selected,
  onSelect,
}: {
  graph: BoxGraph
  selected: number | undefined
  onSelect: (box: number) => void
}) {
  const [filter, setFilter] = useState('')
  const { names, operators } = graph.columns
  const rows = useMemo(() => matchingNodes(graph, filter), [graph, filter])
  return (
    <section aria-label="Nodes">
      <h2>Nodes</h2>
      <div class="fields">
        <TextField label="Search operators and names" value={filter} onChange={setFilter} isEager />
        <p class="quiet" role="status">
          {countText(rows.length)} of {countText(operators.length)} nodes
        </p>
      </div>
      <VirtualRows
        label="Nodes"
        count={rows.length}
        columns="nodes"
        header={['#', 'operator', 'name'].map((title) => (
          <span key={title} role="columnheader">
            {title}
          </span>
        ))}
        shown={selected === undefined ? undefined : rows.indexOf(selected)}
        row={(at) => {
          const node = rows[at]!
          return (
            <>
              <span role="cell">{node}</span>
              <span role="cell">
                <button
                  type="button"
                  class="plain"
                  aria-pressed={node === selected}
                  onClick={() => onSelect(node)}
                >
                  {operators[node]}
                </button>
              </span>
              <span role="cell">{names[node]}</span>
            </>
          )
        }}
      />
    </section>
  )
}

interface ChosenProps extends ViewProps {
  box: number
  findings: readonly PlacedFinding[]
  onSelect: (box: number) => void
}

function ChosenBox(props: ChosenProps) {
  const { file, graph, box } = props
  if (graph.kindOf(box) === 'node') return <ChosenNode {...props} />
  const value = graph.boxValue(box)!
  return (
    <>
      <h2>
        {graph.kindOf(box)} {graph.columns.values[value]}
      </h2>
      <ul>
        <ValueItem graph={graph} file={file} value={value} />
      </ul>
    </>
  )
}

function ChosenNode({ file, index, graph, box, findings }: ChosenProps) {
  const { names, operators, inputs, outputs, activations, subgraphs } = graph.columns
  const key = `${file} ${index} ${box}`
  const facts = useLoad(key, (signal) => ask<NodeFacts>('node', { file, graph: index, node: box }, signal))
  const inner = subgraphs.filter(([node]) => node === box)
  const list = (title: string, values: readonly number[]) => (
    <>
      <h3>{title}</h3>
      <ol start={0}>
        {values.map((value, at) => (
          <ValueItem key={at} graph={graph} file={file} value={value} />
        ))}
      </ol>
    </>
  )
  return (
    <>
      <h2>
        {operators[box]} {names[box]}
      </h2>
      {activations[box] && <p>Fused activation: {activations[box]}</p>}
      {findings
        .filter(({ node }) => node === box)
        .map(({ severity, code, message }) => (
          <p key={message} class={severity}>
            <b>{severity}</b> {code}: {message}
          </p>
        ))}
      <Awaited loaded={facts}>{({ attributes }) => <Facts facts={attributes} />}</Awaited>
      {list('Inputs', inputs[box]!)}
      {list('Outputs', outputs[box]!)}
      {inner.map(([, number]) => (
        <p key={number}>
          <a href={hrefOf('graph', { file, graph: number })}>Open its subgraph</a>
        </p>
      ))}
    </>
  )
}

function ValueItem({ graph, file, value }: { graph: BoxGraph; file: number; value: number }) {
  if (value < 0) return <li class="quiet">omitted</li>
  const { values, types, tensors } = graph.columns
  const tensor = tensors[value]!
  const name = values[value]!
  return (
    <li>
      {tensor < 0 ? <b>{name}</b> : <a href={hrefOf('tensor', { file, tensor })}>{name}</a>}{' '}
      <span class="quiet">{types[value]}</span>
    </li>
  )
}

function Findings(props: {
  findings: readonly PlacedFinding[]
  index: number
  onSelect: (box: number) => void
}) {
  const { findings, index, onSelect } = props
  return (
    <section aria-label="Findings">
      <h2>Findings</h2>
      {findings.length === 0 && <p class="quiet">A strict check finds nothing.</p>}
      <ul class="findings">
        {findings.slice(0, 200).map(({ severity, code, path, message, node, graph }) => (
          <li key={`${code} ${path} ${message}`} class={severity}>
            <b>{severity}</b> {code}{' '}
            {node >= 0 && graph === index ? (
              <button type="button" class="plain" onClick={() => onSelect(node)}>
                {path}
              </button>
            ) : (
              path
            )}
            : {message}
          </li>
        ))}
      </ul>
    </section>
  )
}
