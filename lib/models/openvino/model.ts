/** An IR beside its tensors: what it is, and where the parts of its files are. */
import { inspect } from 'node:util'
import { MODEL_FORMAT } from '../../formats/model_brand.js'
import type { WalkedIr } from '../../formats/openvino/constants.js'
import { FORMAT_NAME } from '../../formats/openvino/schema.js'
import { OpenvinoTensors } from '../../formats/openvino/tensor_list.js'
import { uncloneable } from '../../uncloneable.js'
import type { OpenvinoPort, OpenvinoSummary } from './summary.js'

const UNCLONEABLE = uncloneable('an OpenVINO model; send its path or bytes instead')

export class OpenvinoModel {
  /** The first property, so that its text is what a failed clone reports. */
  readonly uncloneable = UNCLONEABLE
  /** Version of the format: 10 or 11. */
  readonly version: number
  readonly name: string
  readonly inputs: readonly OpenvinoPort[]
  readonly outputs: readonly OpenvinoPort[]
  /** Layers of the main graph; those of bodies are not counted. */
  readonly layerCount: number
  /** Leaves of `rt_info` by the names of the elements around them: `conversion_parameters/input`. */
  readonly rtInfo: ReadonlyMap<string, string>
  /** @internal Layers that compute, of all graphs. */
  readonly operatorCount: number
  /** @internal The constants as they were read. */
  readonly tensors: OpenvinoTensors
  /** @internal */
  readonly files: WalkedIr

  /** @internal */
  constructor(files: WalkedIr, summary: OpenvinoSummary) {
    this.files = files
    this.version = files.version
    this.name = files.name
    this.inputs = summary.inputs
    this.outputs = summary.outputs
    this.layerCount = summary.layerCount
    this.operatorCount = summary.operatorCount
    this.rtInfo = summary.rtInfo
    this.tensors = new OpenvinoTensors(files.constants, files.weights)
  }

  /** @internal Names the format without loading it. */
  get [MODEL_FORMAT](): 'openvino' {
    return FORMAT_NAME
  }

  [inspect.custom](): string {
    return `OpenvinoModel ${JSON.stringify(this.name)} version ${this.version}, ${this.layerCount} layers`
  }
}
