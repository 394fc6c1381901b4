/** Changes of an OpenVINO IR: new values of constants. Its layers keep their types and shapes. */

import type { OpenvinoModel } from '../../formats.js'
import type { OpenFile } from '../../index.js'
import { formatCount } from '../text/byte_count.js'
import type { EditChoice } from './edit_choice.js'
import type { ConstantFiles } from './edit_constants.js'
import { refuseGraphChanges } from './edit_formats.js'
import { type Constant, weightsOf } from './edit_weights.js'

export class OpenvinoChanges {
  readonly made: string[] = []
  readonly notes: readonly string[] = []
  readonly blocked: ReadonlySet<string> = new Set()
  readonly unknown: readonly string[] = []
  readonly model: OpenvinoModel
  readonly #tensors: OpenFile['tensors']
  readonly #files: ConstantFiles

  /** @param files - provides constants of other files */
  constructor(model: OpenvinoModel, tensors: OpenFile['tensors'], files: ConstantFiles) {
    this.model = model
    this.#tensors = tensors
    this.#files = files
  }

  /** @throws TileworkError as `replaceConstant`, and ERR_UNSUPPORTED for changes of the graph */
  async make(choice: EditChoice): Promise<void> {
    refuseGraphChanges(choice)
    const { replaceConstant = [], weights, force } = choice
    for (const { name, value } of replaceConstant) {
      const numbers = await this.#files.constant(name, value)
      this.model.replaceConstant(name, numbers)
      this.made.push(`constant ${name} is ${numbers.dtype} [${numbers.shape.join(', ')}] of ${value}`)
    }
    if (weights !== undefined) await this.#setWeights(weights, force)
  }

  async #setWeights(path: string, force: boolean | undefined): Promise<void> {
    const constants = new Map<string, Constant>()
    for (const { kind, name, dtype, shape } of this.#tensors) {
      if (kind === 'dense') constants.set(name, { name, dtype, shape, isFixed: true })
    }
    const replacements = weightsOf(await this.#files.open(path), path, constants, force)
    for (const { name, numbers } of replacements) this.model.replaceConstant(name, numbers)
    const others = formatCount(this.#tensors.length - replacements.length, 'other')
    this.made.push(`${formatCount(replacements.length, 'constant')} of ${path}; ${others} unchanged`)
  }
}
