/**
 * A tensor in another layout, lazily: a base tensor and a plan. Nothing is computed before bytes are asked for, a
 * range computes only what it must, and a reorder of a reorder joins the outer two layouts.
 */
import { checkRange } from '../bytes/check_range.js'
import { MappedFileSource } from '../bytes/mapped_file.js'
import type { ByteSource } from '../bytes/source.js'
import { systemError } from '../bytes/system_error.js'
import { allocateBytes } from '../bytes/view_limit.js'
import { DTYPES } from '../dtype/dtypes.js'
import { TileworkError } from '../errors.js'
import type { Layout } from '../layout/layout.js'
import { type JoinedLayouts, joinLayouts } from '../layout/plan.js'
import { asStored, StoredTensor } from './dense.js'
import type { DenseTensor, Tensor, TypedArray } from './tensor.js'

export interface ReorderOptions {
  /** Explicit padding before the first element, one count an axis. Data layouts only; written as zeros. */
  readonly lower?: readonly number[]
  /** Explicit padding after the last element, one count an axis. Data layouts only; written as zeros. */
  readonly upper?: readonly number[]
  /** `weights` lets a data layout join a weights layout of the same rank by position (`b` is `o`, `f` is `i`). */
  readonly as?: 'weights'
}

/**
 * The tensor in another layout, with the same name, element type and logical shape. Lazy.
 *
 * @param tensor - a dense tensor in any layout
 * @param layout - a layout name (see `parseLayout`) or a parsed layout; `row_major` takes a blocked tensor back
 * @throws TileworkError now, not later: ERR_UNSUPPORTED for a tensor that is not dense, ERR_LAYOUT_NAME,
 * ERR_LAYOUT_SHAPE, ERR_LAYOUT_JOIN, ERR_NO_DATA
 */
export function reorder(tensor: Tensor, layout: string | Layout, options: ReorderOptions = {}): DenseTensor {
  if (tensor?.kind === undefined || layout === undefined) {
    throw new TileworkError('ERR_ARGUMENT', 'reorder takes a tensor and the layout that it is to have.')
  }
  if (tensor.kind !== 'dense') {
    const what = `"${tensor.name}" is a ${tensor.kind} tensor`
    throw new TileworkError('ERR_UNSUPPORTED', `${what}; only dense tensors have a layout.`)
  }
  const isReordered = tensor instanceof ReorderedTensor
  const base = isReordered ? tensor.base : asStored(tensor)
  const as = options.as ?? (isReordered ? tensor.joinedAs : undefined)
  const { storage } = base
  const joined = joinLayouts({
    dtype: base.dtype,
    shape: base.shape,
    from: { layout: storage.layout, lower: storage.lower, upper: storage.upper },
    to: {
      layout,
      ...(options.lower && { lower: options.lower }),
      ...(options.upper && { upper: options.upper }),
    },
    ...(as && { as }),
  })
  return new ReorderedTensor(base, joined, as)
}

/** See {@link reorder}. Logical values are those of the base, so they are read from there. */
export class ReorderedTensor extends StoredTensor {
  readonly base: StoredTensor
  readonly joinedAs: 'weights' | undefined
  declare readonly source: ReorderedSource

  constructor(base: StoredTensor, joined: JoinedLayouts, joinedAs: 'weights' | undefined) {
    const { layout, storage } = joined.to
    super({
      source: new ReorderedSource(base, joined),
      start: 0,
      name: base.name,
      dtype: base.dtype,
      shape: base.shape,
      metadata: base.metadata,
      layout,
      ...(base.doc !== undefined && { doc: base.doc }),
      lower: storage.side.lower.slice(0, base.shape.length),
      upper: storage.side.upper.slice(0, base.shape.length),
    })
    this.base = base
    this.joinedAs = joinedAs
  }

  override toTypedArray(): Promise<TypedArray> {
    return this.base.toTypedArray()
  }

  override bits(): Promise<Uint8Array | Uint16Array> {
    return this.base.bits()
  }

  override at(...index: readonly number[]): number | bigint | boolean {
    return this.base.at(...index)
  }
}

/** Computes a range of the reordered storage from the base tensor's storage. */
export class ReorderedSource implements ByteSource {
  readonly byteLength: number
  readonly label: string
  readonly #base: StoredTensor
  readonly #joined: JoinedLayouts
  /** True when both storages are equal byte for byte: ranges of the base are given out, nothing is computed. */
  readonly isIdentity: boolean

  constructor(base: StoredTensor, joined: JoinedLayouts) {
    this.#base = base
    this.#joined = joined
    this.isIdentity = joined.plan.explain().kind === 'identity'
    this.byteLength = joined.to.storage.byteLength
    this.label = `tensor "${base.name}" as ${joined.to.layout.name}`
  }

  async read(start: number, end: number): Promise<Uint8Array> {
    return (await this.hold()).read(start, end)
  }

  readSync(start: number, end: number): Uint8Array {
    checkRange(start, end, this.byteLength, this.label)
    if (this.isIdentity) return this.#base.bytesSync({ start, end })
    const { plan } = this.#joined
    const mapped = this.#mapped()
    return this.#fill(start, end, (destination, from, to) => {
      if (mapped) plan.runFileSync(mapped.native, this.#base.start, destination, from, to)
      else plan.runSync(this.#base.bytesSync(), destination, from, to)
    })
  }

  /**
   * The base made ready once for many ranges: a mapped file stays where it is, any other source is read whole, since
   * a range of the result may need every byte of it.
   */
  async hold(): Promise<{ read(start: number, end: number): Promise<Uint8Array> }> {
    const { plan } = this.#joined
    const mapped = this.#mapped()
    const bytes = mapped || this.isIdentity ? undefined : await this.#base.bytes()
    return {
      read: async (start, end) => {
        checkRange(start, end, this.byteLength, this.label)
        if (this.isIdentity) return this.#base.bytes({ start, end })
        let job: Promise<void> | undefined
        const filled = this.#fill(start, end, (destination, from, to) => {
          job = mapped
            ? plan.runFile(mapped.native, this.#base.start, destination, from, to)
            : plan.run(bytes!, destination, from, to)
        })
        await systemError.wrapAsync(this.label, () => job ?? Promise.resolve())
        return filled
      },
    }
  }

  #mapped(): MappedFileSource | undefined {
    return this.#base.source instanceof MappedFileSource ? this.#base.source : undefined
  }

  /** Plans write whole elements, so the range is widened to them and the middle is given back. */
  #fill(
    start: number,
    end: number,
    run: (destination: Uint8Array, from: number, to: number) => void,
  ): Uint8Array {
    const elementBytes = Math.max(1, DTYPES[this.#base.dtype].bits / 8)
    const from = start - (start % elementBytes)
    const to = Math.min(this.byteLength, Math.ceil(end / elementBytes) * elementBytes)
    const destination = allocateBytes(to - from)
    systemError.wrap(this.label, () => run(destination, from, to))
    return destination.subarray(start - from, end - from)
  }
}
