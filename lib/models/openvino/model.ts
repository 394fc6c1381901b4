/** An IR beside its tensors: what it is, and where the parts of its files are. */
import { inspect } from 'node:util'
import { TileworkError } from '../../errors.js'
import type { TensorList } from '../../formats/format.js'
import { MODEL_FORMAT } from '../../formats/model_brand.js'
import type { WalkedIr } from '../../formats/openvino/constants.js'
import { FORMAT_NAME } from '../../formats/openvino/schema.js'
import { openvinoTensors } from '../../formats/openvino/tensor_list.js'
import { mapTensors, type Tensors } from '../../formats/tensor_list.js'
import { checkTensor } from '../../tensor/check_tensor.js'
import { isPlain } from '../../tensor/plain_storage.js'
import { reorder } from '../../tensor/reorder.js'
import type { DenseTensor, Tensor } from '../../tensor/tensor.js'
import { withName } from '../../tensor/with_name.js'
import { uncloneable } from '../../uncloneable.js'
import { valueText } from '../../value_text.js'
import { type OpenvinoFloat16Report, toFloat16 } from './float16.js'
import { COMPRESSED_SUFFIX } from './names.js'
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
  readonly tensors: TensorList<Tensor>
  /** @internal */
  readonly files: WalkedIr
  /** @internal New values by the name of the constant. */
  readonly replaced = new Map<string, Tensor>()
  /** @internal Values of constants that become float16, by their names in the file. */
  readonly float16 = new Map<string, DenseTensor>()

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
    this.tensors = openvinoTensors(files.constants, files.weights)
  }

  /**
   * Replaces the values of a constant. They are written when the model is saved; `file.tensors` keeps listing the file as it was
   * opened. Values of `u1`, `u3`, `u6` and `nf4` are given in the dtype in which they are read.
   *
   * @param name - of the constant, as in `file.tensors`
   * @param values - a tensor of its dtype and shape, in any layout
   * @throws TileworkError ERR_ARGUMENT for an unknown name, and for another dtype or shape: the layers around it would not fit
   */
  replaceConstant(name: string, values: Tensor): void {
    const old = this.tensors.get(name)
    if (!old) throw new TileworkError('ERR_ARGUMENT', `The model has no constant ${valueText(name)}.`)
    const given = checkTensor(values, 'replaceConstant')
    if (given.kind !== old.kind || given.dtype !== old.dtype || String(given.shape) !== String(old.shape)) {
      const message = `The constant ${valueText(name)} is ${kindOf(old)}; ${kindOf(given)} was given.`
      throw new TileworkError('ERR_ARGUMENT', message)
    }
    this.float16.delete(name)
    this.replaced.set(name, given.kind === 'dense' ? inRows(given) : given)
  }

  /**
   * Makes float32 and float64 constants float16, as `save_model(compress_to_fp16=True)` of OpenVINO does: a Convert with the name of the
   * constant follows each, so that other layers get what they got before. Constants stay where too many values are out of range or
   * change too much, where shapes are computed from them, and all of them in a quantized model. A constant that is replaced
   * afterwards stays as it was given.
   *
   * @throws TileworkError ERR_NO_DATA, ERR_ABORTED, ERR_IO
   */
  async toFloat16(options: { readonly signal?: AbortSignal } = {}): Promise<OpenvinoFloat16Report> {
    return toFloat16(this, options.signal)
  }

  /** @internal The constants as they are now. */
  constants(): Tensors<Tensor> {
    if (this.replaced.size + this.float16.size === 0) return this.tensors
    return mapTensors(this.tensors, (tensor) => {
      const { name } = tensor
      const half = this.float16.get(name)
      return half
        ? withName(half, name + COMPRESSED_SUFFIX)
        : withName(this.replaced.get(name) ?? tensor, name)
    })
  }

  /** @internal Names the format without loading it. */
  get [MODEL_FORMAT](): 'openvino' {
    return FORMAT_NAME
  }

  [inspect.custom](): string {
    return `OpenvinoModel ${JSON.stringify(this.name)} version ${this.version}, ${this.layerCount} layers`
  }
}

function kindOf({ kind, dtype, shape }: Tensor): string {
  return `${kind === 'dense' ? '' : `${kind} `}${dtype} [${shape.join(', ')}]`
}

function inRows(tensor: DenseTensor): DenseTensor {
  return isPlain(tensor.storage) ? tensor : reorder(tensor, 'row_major')
}
