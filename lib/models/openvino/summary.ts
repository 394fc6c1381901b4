/** What an IR says beside the values of its constants: inputs, outputs, layers and run-time information. */
import type { Budget } from '../../formats/budget.js'
import { TYPES } from '../../formats/openvino/schema.js'
import {
  type Edge,
  findAttribute,
  type Layer,
  type Net,
  namesOf,
  type Visitor,
} from '../../formats/openvino/walk.js'

/** An input or output of the model. */
export interface OpenvinoPort {
  /** Name of its Parameter or Result layer. */
  readonly name: string
  /** Names by which programs find the tensor; there may be several. */
  readonly tensorNames: readonly string[]
  /** As the file has it: `f32`. */
  readonly type: string
  /** A size, `?` for any, or a range such as `8..64`; undefined for an unknown rank. */
  readonly shape: readonly (number | string)[] | undefined
}

export interface OpenvinoSummary {
  readonly inputs: readonly OpenvinoPort[]
  readonly outputs: readonly OpenvinoPort[]
  /** Layers of the main graph; those of bodies are not counted. */
  readonly layerCount: number
  /** Layers that compute, of all graphs: neither constants nor inputs nor outputs. */
  readonly operatorCount: number
  /** Leaves of `rt_info` by the names of the elements around them: `conversion_parameters/input`. */
  readonly rtInfo: ReadonlyMap<string, string>
}

/** Layers that hold or pass values and compute nothing. */
const WITHOUT_WORK: ReadonlySet<string> = new Set(['Const', 'Constant', 'Parameter', 'Result'])

const TYPE_BY_PRECISION: ReadonlyMap<string, string> = new Map(
  Array.from(TYPES, ([name, { precision }]) => [precision, name]),
)

/** An output until the edge to it is known. */
interface FoundResult {
  readonly layer: Layer
  /** Layer and port that make its value. */
  from?: string
}

export class SummaryVisitor implements Visitor {
  readonly #budget: Budget
  readonly #inputs: OpenvinoPort[] = []
  readonly #results = new Map<string, FoundResult>()
  /** Tensor names of ports of the main graph by layer and port. */
  readonly #names = new Map<string, readonly string[]>()
  readonly #rtInfo = new Map<string, string>()
  #layers = 0
  #operators = 0

  constructor(budget: Budget) {
    this.#budget = budget
  }

  readonly layer = (layer: Layer): void => {
    const { type, id, name, graph, outputs } = layer
    if (!WITHOUT_WORK.has(type)) this.#operators += 1
    if (graph.index !== 0) return
    this.#layers += 1
    for (const { id: port, names } of outputs) {
      this.#names.set(`${id}:${port}`, [
        ...namesOf(names?.text ?? ''),
        outputs.length > 1 ? `${name}.${port}` : name,
      ])
    }
    if (type === 'Parameter') this.#inputs.push(inputOf(layer))
    else if (type === 'Result') this.#results.set(id, { layer })
  }

  readonly edge = ({ graph, toLayer, fromLayer, fromPort }: Edge): void => {
    const result = graph.index === 0 && this.#results.get(toLayer)
    if (result) result.from = `${fromLayer.text}:${fromPort.text}`
  }

  readonly info = (path: string, value: string): void => {
    this.#budget.demand('headerBytes', value.length, 0)
    this.#rtInfo.set(path, value)
  }

  finish({ version }: Net): OpenvinoSummary {
    return {
      inputs: this.#inputs,
      outputs: Array.from(this.#results.values(), (result) => this.#outputOf(result, version)),
      layerCount: this.#layers,
      operatorCount: this.#operators,
      rtInfo: this.#rtInfo,
    }
  }

  #outputOf({ layer, from }: FoundResult, version: number): OpenvinoPort {
    const own = findAttribute(layer.attributes, 'output_names')?.text
    const made = this.#names.get(from ?? '') ?? []
    // In files of version 10 the name of the layer that makes an output is a name of the output, too.
    const named = version === 10 ? [...new Set(made)] : own === undefined ? made.slice(0, -1) : namesOf(own)
    const [port] = layer.inputs
    return {
      name: layer.name,
      tensorNames: named,
      type: TYPE_BY_PRECISION.get(port?.precision?.text ?? '') ?? '',
      shape: port?.dims.map((dim) => (dim === '-1' ? '?' : sizeOrText(dim))),
    }
  }
}

function inputOf({ name, data, outputs: [port] }: Layer): OpenvinoPort {
  const shape = findAttribute(data, 'shape')?.text.trim()
  return {
    name,
    tensorNames: namesOf(port?.names?.text ?? ''),
    type: findAttribute(data, 'element_type')?.text ?? '',
    // Three dots stand for any rank.
    shape:
      shape === undefined || shape.includes('...')
        ? undefined
        : shape === ''
          ? []
          : shape.split(',').map(sizeOrText),
  }
}

function sizeOrText(text: string): number | string {
  const trimmed = text.trim()
  return /^\d{1,15}$/.test(trimmed) ? Number(trimmed) : trimmed
}
