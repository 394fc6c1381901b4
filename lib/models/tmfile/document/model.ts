/** A model as objects that refer to each other directly; indices are assigned when the model is written. */
import { inspect } from 'node:util'
import { isInstance } from '../../../caller_input.js'
import { TileworkError } from '../../../errors.js'
import { MODEL_FORMAT } from '../../../formats/model_brand.js'
import type {
  TensorLinks,
  TmfileGraph,
  TmfileModelFields,
  TmfileTensor,
} from '../../../formats/tmfile/types.js'
import { uncloneable } from '../../../uncloneable.js'
import { valueText } from '../../../value_text.js'
import { linksOf } from './lookup.js'

const UNCLONEABLE = uncloneable('a tmfile model; send the bytes of serialize() instead')

/** A tmfile as objects that can be edited and saved again. */
export class TmfileModel implements TmfileModelFields {
  /** @internal The first own property, so that its text is what a failed clone reports. */
  readonly uncloneable = UNCLONEABLE
  readonly kind = 'tmfile'
  /** Main, sub and compile version of the file; the main version is 2. */
  version: readonly [number, number, number] = [2, 0, 0]
  /** The framework that the model was converted from, by number; informative only. */
  originalFormat = 0
  subFormat = 0
  name: string | null = null
  graph: TmfileGraph

  constructor(graph: Partial<TmfileGraph> = {}) {
    this.graph = { ...emptyGraph(), ...graph }
  }

  get [MODEL_FORMAT](): 'tmfile' {
    return 'tmfile'
  }

  /** @internal */
  [inspect.custom](): string {
    const { nodes, tensors } = this.graph
    const name = this.name ? `${inspect(this.name)} ` : ''
    return `TmfileModel ${name}(${nodes.length} nodes, ${tensors.length} tensors)`
  }

  /** Producer and consumers of every tensor, in the current state of the graph. */
  links(): Map<TmfileTensor, TensorLinks> {
    return linksOf(this.graph)
  }
}

function emptyGraph(): TmfileGraph {
  return {
    id: 0,
    name: null,
    graphLayout: 0,
    modelLayout: 0,
    nodes: [],
    tensors: [],
    buffers: [],
    inputs: [],
    outputs: [],
    devices: null,
  }
}

/** @throws TileworkError ERR_ARGUMENT unless `model` is a TmfileModel */
export function checkModel(model: TmfileModel, caller: string): void {
  if (isInstance(model, TmfileModel)) return
  throw new TileworkError('ERR_ARGUMENT', `${caller} takes a TmfileModel; ${valueText(model)} was given.`)
}
