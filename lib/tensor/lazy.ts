/** Tensors whose values a function of the caller makes on first use; element type and shape are known before. */
import { checkRange } from '../bytes/check_range.js'
import type { ByteSource } from '../bytes/source.js'
import { systemError } from '../bytes/system_error.js'
import { checkName, checkOptions, readInput } from '../caller_input.js'
import { type CanonicalDtype, type Dtype, type DtypeName, resolveDtype } from '../dtype/dtypes.js'
import { packedByteLength } from '../dtype/packed_codes.js'
import { TileworkError } from '../errors.js'
import { valueText } from '../value_text.js'
import { asTensor, type TensorLike } from './adapters.js'
import { StoredTensor } from './dense.js'
import { isPlain } from './plain_storage.js'
import { reorder } from './reorder.js'
import { checkShape, sizeOf } from './shape.js'
import type { DenseTensor } from './tensor.js'

export interface LazyTensorOptions<Name extends DtypeName = DtypeName> {
  readonly dtype: Name
  readonly shape: readonly number[]
  readonly name?: string
  /** Whether loaded values are kept for later reads. Default true; false loads again for every read. */
  readonly keep?: boolean
}

/**
 * A tensor whose values `load` makes. It is called on the first read, once for all concurrent reads, and again after a
 * failure. `save` reads a tensor in windows, so with `keep: false` a load should be cheap.
 *
 * @param load - returns anything that `asTensor` takes, or a promise of it; a blocked tensor is reordered to row-major
 * @throws TileworkError ERR_ARGUMENT, ERR_DTYPE, ERR_OVERFLOW; reads throw ERR_ARGUMENT where the loaded tensor has another
 * element type or shape, and what `load` throws; synchronous reads throw ERR_ASYNC_ONLY
 */
export function lazyTensor<Name extends DtypeName>(
  load: () => TensorLike | Promise<TensorLike>,
  options: LazyTensorOptions<Name>,
): DenseTensor<CanonicalDtype<Name>>
export function lazyTensor(
  load: () => TensorLike | Promise<TensorLike>,
  options: LazyTensorOptions,
): DenseTensor {
  if (typeof load !== 'function') {
    throw new TileworkError('ERR_ARGUMENT', `load is ${valueText(load)}; lazyTensor takes a function.`)
  }
  checkOptions(options, 'lazyTensor', ['dtype', 'shape', 'name', 'keep'])
  const { dtype, shape, name, keep } = readInput('The options of lazyTensor', () => ({
    dtype: resolveDtype(options.dtype),
    shape: checkShape(options.shape),
    name: checkName(options.name ?? ''),
    keep: options.keep !== false,
  }))
  if (dtype === 'string') {
    throw new TileworkError('ERR_DTYPE', 'Strings have no fixed size and cannot be a dense tensor.')
  }
  return new StoredTensor({
    source: new LazySource(load, { dtype, shape, name, keep }),
    start: 0,
    dtype,
    shape,
    name,
  })
}

interface Declared extends Required<LazyTensorOptions> {
  readonly dtype: Dtype
}

class LazySource implements ByteSource {
  readonly byteLength: number
  readonly label: string
  readonly #load: () => TensorLike | Promise<TensorLike>
  readonly #declared: Declared
  #loading: Promise<DenseTensor> | undefined

  constructor(load: () => TensorLike | Promise<TensorLike>, declared: Declared) {
    this.byteLength = packedByteLength(declared.dtype, sizeOf(declared.shape))
    this.label = `tensor "${declared.name}"`
    this.#load = load
    this.#declared = declared
  }

  async read(start: number, end: number): Promise<Uint8Array> {
    checkRange(start, end, this.byteLength, this.label)
    return (await this.#tensor()).bytes({ start, end })
  }

  async readInto(start: number, target: Uint8Array): Promise<void> {
    checkRange(start, start + target.byteLength, this.byteLength, this.label)
    await (await this.#tensor()).copyTo(target, { start })
  }

  #tensor(): Promise<DenseTensor> {
    this.#loading ??= this.#loadOnce()
    return this.#loading
  }

  async #loadOnce(): Promise<DenseTensor> {
    try {
      const loaded = await systemError.wrapAsync(this.label, async () => this.#load())
      const tensor = asTensor(loaded)
      this.#checkDeclared(tensor)
      if (!this.#declared.keep) this.#loading = undefined
      return isPlain(tensor.storage) ? tensor : reorder(tensor, 'row_major')
    } catch (error) {
      this.#loading = undefined
      throw error
    }
  }

  #checkDeclared({ dtype, shape }: DenseTensor): void {
    const { dtype: wanted, shape: wantedShape } = this.#declared
    if (dtype === wanted && shape.join() === wantedShape.join()) return
    const message = `${this.label} was loaded as ${dtype} [${shape}]; it is declared as ${wanted} [${wantedShape}].`
    throw new TileworkError('ERR_ARGUMENT', message)
  }
}
