/** The files named on the command line. Requests refer to files and tensors by index only. */

import type { Finding } from '../../errors.js'
import { TileworkError } from '../../errors.js'
import type { ModelFormat } from '../../formats/format.js'
import type { ModelDescription } from '../../formats/model_description.js'
import { valueTypeText } from '../../models/onnx/document/value_type.js'
import { inferTypes } from '../../models/onnx/infer/infer.js'
import { quantizationOf } from '../../pipeline/diff/named_quantization.js'
import type { OpenFile } from '../../pipeline/open.js'
import { formatOfModel } from '../../pipeline/registry.js'
import type { QuantizationParameters } from '../../tensor/quantization.js'
import type { AnyTensor } from '../../tensor/tensor.js'
import { untilRejected } from './kept_promises.js'
import type { Parameters } from './parameters.js'

/** A file to show. */
export interface ViewedFile {
  /** Name without its folder. */
  readonly name: string
  readonly file: OpenFile
  /** Runs the check of the file. */
  readonly check: (signal: AbortSignal) => Promise<readonly Finding[]>
}

/** A file with cached results. */
export class KnownFile {
  #description: Promise<ModelDescription | undefined> | undefined
  #findings: Promise<readonly Finding[]> | undefined
  #types: Promise<Readonly<Record<string, string>>> | undefined
  #last: { readonly index: number; readonly tensor: AnyTensor } | undefined
  readonly #viewed: ViewedFile

  constructor(viewed: ViewedFile) {
    this.#viewed = viewed
  }

  get name(): string {
    return this.#viewed.name
  }

  get file(): OpenFile {
    return this.#viewed.file
  }

  get model(): object | undefined {
    return this.file.onnx ?? this.file.tmfile ?? this.file.gguf ?? this.file.openvino
  }

  /** Description of the model's graphs, read once; undefined without a model. */
  description(): Promise<ModelDescription | undefined> {
    this.#description ??= untilRejected(this.#describe(), () => {
      this.#description = undefined
    })
    return this.#description
  }

  /** Findings of the check, which runs once. An aborted request does not abort the check, for which others may wait. */
  findings(): Promise<readonly Finding[]> {
    this.#findings ??= untilRejected(this.#viewed.check(new AbortController().signal), () => {
      this.#findings = undefined
    })
    return this.#findings
  }

  /** Inferred types of an ONNX model's values, computed once: a large model takes many seconds. */
  inferredTypes(): Promise<Readonly<Record<string, string>>> {
    this.#types ??= untilRejected(this.#inferTypes(), () => {
      this.#types = undefined
    })
    return this.#types
  }

  /** Returns one object for consecutive requests of a tensor: results are cached by the object, only as long as it lives. */
  tensor(index: number): AnyTensor {
    if (this.#last?.index === index) return this.#last.tensor
    const tensor = this.file.tensors.at(index)
    if (tensor) {
      this.#last = { index, tensor }
      return tensor
    }
    throw new TileworkError('ERR_RANGE', `There is no tensor ${index} in ${this.name}.`)
  }

  async quantizationOf(tensor: AnyTensor): Promise<QuantizationParameters | undefined> {
    if (tensor.kind !== 'dense') return undefined
    return quantizationOf(tensor, (name) => this.file.tensors.get(name))
  }

  async #inferTypes(): Promise<Readonly<Record<string, string>>> {
    const { onnx } = this.file
    const types = onnx ? inferTypes(onnx) : []
    return Object.fromEntries(Array.from(types, ([name, type]) => [name, valueTypeText(type)]))
  }

  async #describe(): Promise<ModelDescription | undefined> {
    const { model } = this
    if (!model) return undefined
    const format = (await formatOfModel(model)!.load()) as ModelFormat
    return format.describe(model)
  }
}

export class KnownFiles {
  readonly all: readonly KnownFile[]

  constructor(files: readonly ViewedFile[]) {
    this.all = files.map((file) => new KnownFile(file))
  }

  /** The file that a parameter names by its index. */
  of(parameters: Parameters, name = 'file'): KnownFile {
    return this.all[parameters.whole(name, 0, this.all.length - 1)]!
  }

  /** The tensor that the parameters `file` and `tensor` name. */
  tensorOf(parameters: Parameters): {
    readonly known: KnownFile
    readonly tensor: AnyTensor
    readonly index: number
  } {
    const known = this.of(parameters)
    const index = parameters.whole('tensor', 0, Math.max(0, known.file.tensors.length - 1))
    return { known, tensor: known.tensor(index), index }
  }
}
