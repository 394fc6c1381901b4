/**
 * Reads the XML file of an IR: its graphs, layers and edges, each given to a visitor when its element ends. A layer has the byte
 * ranges of what an edit changes. Elements that are not known are skipped.
 *
 *     net > layers > layer > data, rt_info, input > port > dim, output > port > dim, body > layers …
 *     net > edges > edge
 *     net > rt_info, meta_data > a tree whose leaves have values
 */
import type { Budget } from '../budget.js'
import { FileFault } from '../file_fault.js'
import { quote } from '../quote.js'
import { BODIES, MAX_LAYERS, ROOT, VERSIONS } from './schema.js'
import { type Attribute, XmlCursor } from './xml.js'

/** The main graph, or the body of a layer. */
export interface GraphScope {
  /** In file order; the main graph is 0. */
  readonly index: number
  /** Starts the names of its constants: empty for the main graph, `OWNER/then_body/` for a body. */
  readonly path: string
  /** The layer that a body belongs to; absent for the main graph. */
  readonly owner?: { readonly graph: GraphScope; readonly id: string }
}

export interface Port {
  readonly id: string
  readonly precision: Attribute | undefined
  /** Tensor names, separated by commas. */
  readonly names: Attribute | undefined
  readonly dims: string[]
  /** Byte offset of its element. */
  readonly start: number
  /** Byte offset after its element. */
  end: number
}

export interface Layer {
  readonly graph: GraphScope
  readonly id: string
  /** The friendly name; need not be unique. */
  readonly name: string
  readonly type: string
  readonly attributes: readonly Attribute[]
  /** Attributes of the first `<data>`. */
  data: readonly Attribute[]
  /** True where its run-time information asks for full precision. */
  isPrecise: boolean
  readonly inputs: Port[]
  readonly outputs: Port[]
  /** Byte offset of its element. */
  readonly start: number
  /** Byte offset after its element. */
  end: number
}

export interface Edge {
  readonly graph: GraphScope
  readonly fromLayer: Attribute
  readonly fromPort: Attribute
  readonly toLayer: string
  readonly toPort: string
  readonly start: number
}

export interface Visitor {
  layer?(layer: Layer): void
  edge?(edge: Edge): void
  /** A leaf of the run-time information, by the names of the elements around it. */
  info?(path: string, value: string): void
}

export interface Net {
  readonly version: number
  readonly name: string
}

/** What the element is that encloses the next one. */
type Frame =
  | { readonly kind: 'graph'; readonly graph: GraphScope }
  | { readonly kind: 'layers'; readonly graph: GraphScope }
  | { readonly kind: 'edges'; readonly graph: GraphScope }
  | { readonly kind: 'layer'; readonly layer: Layer }
  | { readonly kind: 'marks'; readonly layer: Layer }
  | { readonly kind: 'ports'; readonly ports: Port[] }
  | { readonly kind: 'port'; readonly port: Port }
  | { readonly kind: 'dim'; readonly port: Port; text: string }
  | { readonly kind: 'info'; readonly path: string }
  | { readonly kind: 'other' }

const OTHER: Frame = { kind: 'other' }

/** True for the element that holds information about the model; files of version 10 have the second. */
const isInfo = (name: string): boolean => name === 'rt_info' || name === 'meta_data'

/** @throws FileFault at the first byte that is not XML of an IR */
export function walkXml(bytes: Uint8Array, budget: Budget, visitor: Visitor): Net {
  return new Walk(bytes, budget, visitor).run()
}

class Walk {
  readonly #xml: XmlCursor
  readonly #budget: Budget
  readonly #visitor: Visitor
  readonly #frames: Frame[] = []
  #graphs = 0
  #layers = 0

  constructor(bytes: Uint8Array, budget: Budget, visitor: Visitor) {
    this.#xml = new XmlCursor(bytes, budget.limit('depth'))
    this.#budget = budget
    this.#visitor = visitor
  }

  run(): Net {
    const xml = this.#xml
    xml.next()
    const net = this.#root()
    this.#frames.push({ kind: 'graph', graph: this.#newGraph('') })
    for (;;) {
      const event = xml.next()
      if (event === 'end') return net
      if (event === 'open') this.#frames.push(this.#frameOf(this.#frames.at(-1)!))
      else if (event === 'close') this.#close(this.#frames.pop()!)
      else {
        const frame = this.#frames.at(-1)!
        if (frame.kind === 'dim') frame.text += xml.text()
      }
    }
  }

  #root(): Net {
    const xml = this.#xml
    if (xml.name !== ROOT) {
      throw new FileFault(
        'ERR_HEADER',
        `The root element is ${quote(xml.name)}; that of an IR is "${ROOT}".`,
        xml.start,
      )
    }
    const version = findAttribute(xml.attributes, 'version')?.text ?? ''
    if (!VERSIONS.has(version)) {
      const message = `The version is ${quote(version)}; versions ${[...VERSIONS].join(' and ')} are read.`
      throw new FileFault(/^\d+$/.test(version) ? 'ERR_UNSUPPORTED' : 'ERR_VALUE', message, xml.start)
    }
    return { version: Number(version), name: findAttribute(xml.attributes, 'name')?.text ?? '' }
  }

  #newGraph(path: string, owner?: GraphScope['owner']): GraphScope {
    this.#budget.demand('headerBytes', path.length, this.#xml.start)
    return { index: this.#graphs++, path, ...(owner && { owner }) }
  }

  #frameOf(around: Frame): Frame {
    const { name } = this.#xml
    switch (around.kind) {
      case 'graph':
        if (name === 'layers' || name === 'edges') return { kind: name, graph: around.graph }
        return isInfo(name) && around.graph.index === 0 ? { kind: 'info', path: '' } : OTHER
      case 'layers':
        return name === 'layer' ? { kind: 'layer', layer: this.#layer(around.graph) } : OTHER
      case 'edges':
        if (name === 'edge') this.#edge(around.graph)
        return OTHER
      case 'layer':
        return this.#partOf(around.layer)
      case 'marks':
        if (name === 'attribute' && findAttribute(this.#xml.attributes, 'name')?.text === PRECISE) {
          around.layer.isPrecise = true
        }
        return OTHER
      case 'ports':
        return name === 'port' ? this.#port(around.ports) : OTHER
      case 'port':
        return name === 'dim' ? { kind: 'dim', port: around.port, text: '' } : OTHER
      case 'info':
        return this.#info(around.path)
      default:
        return OTHER
    }
  }

  #partOf(layer: Layer): Frame {
    const { name } = this.#xml
    if (name === 'input') return { kind: 'ports', ports: layer.inputs }
    if (name === 'output') return { kind: 'ports', ports: layer.outputs }
    if (name === 'data' && layer.data === NO_ATTRIBUTES) layer.data = this.#xml.attributes
    if (name === 'rt_info') return { kind: 'marks', layer }
    if (!BODIES.has(name)) return OTHER
    const path = `${layer.graph.path}${layer.name}/${name}/`
    return { kind: 'graph', graph: this.#newGraph(path, { graph: layer.graph, id: layer.id }) }
  }

  #layer(graph: GraphScope): Layer {
    const { start } = this.#xml
    if (++this.#layers > MAX_LAYERS) {
      throw new FileFault('ERR_LIMIT', `The file has more than ${MAX_LAYERS} layers.`, start)
    }
    const attributes = this.#xml.attributes
    const text = (name: string): string => findAttribute(attributes, name)?.text ?? ''
    return {
      ...{ graph, attributes, id: text('id'), name: text('name'), type: text('type') },
      ...{ data: NO_ATTRIBUTES, isPrecise: false, inputs: [], outputs: [], start, end: start },
    }
  }

  #port(ports: Port[]): Frame {
    const values = this.#xml.attributes
    const id = findAttribute(values, 'id')?.text ?? ''
    const [precision, names] = [findAttribute(values, 'precision'), findAttribute(values, 'names')]
    const port: Port = { id, precision, names, dims: [], start: this.#xml.start, end: this.#xml.end }
    ports.push(port)
    return { kind: 'port', port }
  }

  #edge(graph: GraphScope): void {
    const { edge } = this.#visitor
    if (!edge) return
    const values = this.#xml.attributes
    const [fromLayer, fromPort, toLayer, toPort] = EDGE_ENDS.map((name) => {
      const value = findAttribute(values, name)
      if (value) return value
      throw new FileFault('ERR_HEADER', `An edge has no ${name}.`, this.#xml.start)
    }) as [Attribute, Attribute, Attribute, Attribute]
    edge({ graph, fromLayer, fromPort, toLayer: toLayer.text, toPort: toPort.text, start: this.#xml.start })
  }

  #info(around: string): Frame {
    const xml = this.#xml
    // Elements named "info" carry keys that are not names of elements, such as "OpenVINO Runtime".
    const name = findAttribute(xml.attributes, 'name')?.text ?? xml.name
    const path = around === '' ? name : `${around}/${name}`
    const value = findAttribute(xml.attributes, 'value')?.text
    this.#budget.demand('headerBytes', path.length, xml.start)
    if (value !== undefined) this.#visitor.info?.(path, value)
    return { kind: 'info', path }
  }

  #close(frame: Frame): void {
    const { end } = this.#xml
    if (frame.kind === 'dim') frame.port.dims.push(frame.text.trim())
    else if (frame.kind === 'port') frame.port.end = end
    else if (frame.kind === 'layer') {
      frame.layer.end = end
      this.#visitor.layer?.(frame.layer)
    }
  }
}

/** Name of the mark that OpenVINO writes where it must not lower the precision of a layer. */
const PRECISE = 'precise'

const EDGE_ENDS = ['from-layer', 'from-port', 'to-layer', 'to-port'] as const

const NO_ATTRIBUTES: readonly Attribute[] = Object.freeze([])

export function findAttribute(values: readonly Attribute[], name: string): Attribute | undefined {
  for (const value of values) if (value.name === name) return value
  return undefined
}

/** Names of a port: separated by commas, of which those in names have a backslash before them. */
export function namesOf(text: string): string[] {
  if (text === '') return []
  return text.split(/(?<!\\),/).map((name) => name.replaceAll('\\,', ','))
}
