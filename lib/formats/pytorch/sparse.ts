/**
 * Sparse tensors of torch as coordinate lists. The index rows are computed window by window: from those of a coo tensor, or from
 * the compressed rows (csr, bsr) or columns (csc, bsc). Entries of blocks, and of values that are dense along further axes, are
 * single elements here.
 */
import { checkRange } from '../../bytes/check_range.js'
import type { ByteSource } from '../../bytes/source.js'
import { TileworkError } from '../../errors.js'
import type { StoredTensor } from '../../tensor/dense.js'
import { CooTensor } from '../../tensor/sparse.js'
import { makeStrided, type TensorAbout, type TensorFile } from './make_tensor.js'
import type { SparseForm, StridedForm, TensorValue } from './pickle/values.js'

const INDEX_BYTES = 8
const TWO_POW_32 = 2 ** 32

/** A sparse tensor whose parts fit together. */
interface Parts {
  readonly form: SparseForm
  readonly indices: readonly StridedForm[]
  readonly values: StridedForm
  /** Stored indices: entries of a coo tensor, elements or blocks of the others. */
  readonly stored: number
  /** Shape of what one stored index has: a block, and the axes along which values are dense. */
  readonly inner: readonly number[]
  /** Axes of the block in `inner`: 2 for bsr and bsc. */
  readonly blockAxes: 0 | 2
}

/** @throws TileworkError ERR_COO_SHAPE where the parts do not fit together, ERR_UNSUPPORTED for batches of sparse tensors */
export function makeSparse(file: TensorFile, form: SparseForm, about: TensorAbout): CooTensor {
  const parts = checkParts(form, about.name)
  const { values } = parts
  const stored = makeStrided(file, values, { ...about, name: `${about.name} values` })
  const indices = parts.indices.map((each) =>
    makeStrided(file, each, { ...about, name: `${about.name} indices` }),
  )
  if (!stored.hasData || indices.some(({ hasData }) => !hasData)) {
    throw new TileworkError('ERR_NO_DATA', `tensor "${about.name}" is on the device "meta" and has no data.`)
  }
  const rows = new IndexRowsSource(parts, indices as StoredTensor[], about.name)
  return new CooTensor({
    source: new PairSource(rows, stored as StoredTensor),
    indicesStart: 0,
    valuesStart: rows.byteLength,
    entryCount: stored.size,
    dtype: stored.dtype,
    shape: form.shape,
    name: about.name,
  })
}

/** Checks the shapes of the parts against each other, without reading. */
export function checkParts(form: SparseForm, name: string): Parts {
  const refuse = (what: string): never => {
    throw new TileworkError(
      'ERR_COO_SHAPE',
      `tensor "${name}" is ${form.layout} of shape [${form.shape}]; ${what}.`,
    )
  }
  const strided = ({ form: part }: TensorValue): StridedForm => {
    if (part.kind !== 'strided') return refuse('its parts must be dense tensors')
    return part
  }
  const [values, indices] = [strided(form.values), form.indices.map(strided)]
  if (values.type.parts !== 1) refuse(`values of ${values.type.name} are not read`)
  const wrong = indices.find(({ type }) => type.name !== 'int64' && type.name !== 'int32')
  if (wrong) refuse(`its indices are ${wrong.type.name}; they must be int64 or int32`)
  const { stored, isFitting } =
    form.layout === 'coo' ? countCoo(form, indices, values) : countCompressed(form, indices, values)
  if (!isFitting || values.shape[0] !== stored) {
    refuse(`its indices are [${indices.map(({ shape }) => `[${shape}]`)}] and its values [${values.shape}]`)
  }
  const blockAxes = form.layout.startsWith('b') ? 2 : 0
  return { form, indices, values, stored, inner: values.shape.slice(1), blockAxes }
}

interface Counted {
  readonly stored: number
  readonly isFitting: boolean
}

function countCoo({ shape }: SparseForm, [indices]: readonly StridedForm[], values: StridedForm): Counted {
  const [axes = -1, stored = -1, ...more] = indices!.shape
  const isFitting = more.length === 0 && `${shape.slice(axes)}` === `${values.shape.slice(1)}` && axes >= 0
  return { stored, isFitting: isFitting && axes + values.shape.length - 1 === shape.length }
}

function countCompressed(
  form: SparseForm,
  [compressed, plain]: readonly StridedForm[],
  values: StridedForm,
): Counted {
  const { layout, shape } = form
  const [stored = -1, ...more] = plain!.shape
  const isBlocked = layout.startsWith('b')
  const [height, width] = isBlocked ? values.shape.slice(1, 3) : [1, 1]
  if (!height || !width || shape.length < 2) return { stored, isFitting: stored === 0 && shape.length >= 2 }
  const lines = layout.endsWith('sr') ? shape[0]! / height : shape[1]! / width
  const isFitting =
    more.length === 0 &&
    compressed!.shape.length === 1 &&
    compressed!.shape[0] === lines + 1 &&
    `${shape.slice(2)}` === `${values.shape.slice(isBlocked ? 3 : 1)}`
  return { stored, isFitting }
}

/** Index rows, `[entries, rank]` int64, as bytes. */
class IndexRowsSource implements ByteSource {
  readonly byteLength: number
  readonly label: string
  readonly #parts: Parts
  readonly #indices: readonly StoredTensor[]
  /** The compressed indices, read once. */
  #lines: Promise<Float64Array> | undefined

  constructor(parts: Parts, indices: readonly StoredTensor[], name: string) {
    const entries = parts.values.shape.reduce((product, extent) => product * extent, 1)
    this.byteLength = entries * parts.form.shape.length * INDEX_BYTES
    this.label = `tensor "${name}"`
    this.#parts = parts
    this.#indices = indices
  }

  /** @param start - a multiple of a row, as `end` */
  async read(start: number, end: number): Promise<Uint8Array> {
    checkRange(start, end, this.byteLength, this.label)
    const { form, inner } = this.#parts
    const rank = form.shape.length
    const perStored = inner.reduce((product, extent) => product * extent, 1)
    const rowBytes = rank * INDEX_BYTES
    const bytes = new Uint8Array(end - start)
    if (bytes.byteLength === 0) return bytes
    const [first, last] = [start / rowBytes, end / rowBytes]
    const from = Math.floor(first / perStored)
    const outer = await this.#outerIndices(from, Math.ceil(last / perStored))
    const view = new DataView(bytes.buffer)
    const row = new Float64Array(rank)
    for (let entry = first; entry < last; entry++) {
      const stored = Math.floor(entry / perStored)
      this.#fillRow(row, outer, stored - from, entry % perStored)
      for (const [axis, index] of row.entries()) {
        const at = ((entry - first) * rank + axis) * INDEX_BYTES
        view.setUint32(at, index % TWO_POW_32, true)
        view.setUint32(at + 4, Math.floor(index / TWO_POW_32), true)
      }
    }
    return bytes
  }

  /** @param within - position among the elements of one stored index */
  #fillRow(row: Float64Array, outer: readonly Float64Array[], position: number, within: number): void {
    const { inner, blockAxes } = this.#parts
    let left = within
    for (let axis = inner.length - 1; axis >= 0; axis--) {
      const index = left % inner[axis]!
      left = Math.floor(left / inner[axis]!)
      // The axes of a block are those of the blocks; axes of dense values follow.
      if (axis < blockAxes) row[axis] = outer[axis]![position]! * inner[axis]! + index
      else row[outer.length + axis - blockAxes] = index
    }
    if (blockAxes > 0) return
    for (const [axis, indices] of outer.entries()) row[axis] = indices[position]!
  }

  /** Along each sparse axis the indices of what is stored from `from` to `to`. */
  async #outerIndices(from: number, to: number): Promise<Float64Array[]> {
    const { form, stored } = this.#parts
    const [first, plain] = this.#indices
    if (form.layout === 'coo') {
      const axes = first!.shape[0]!
      const rows: Float64Array[] = []
      for (let axis = 0; axis < axes; axis++)
        rows.push(await numbers(first!, axis * stored + from, axis * stored + to))
      return rows
    }
    this.#lines ??= this.#readLines(first!)
    const lines = await this.#lines
    const compressed = linesOf(lines, from, to)
    const others = await numbers(plain!, from, to)
    return form.layout.endsWith('sr') ? [compressed, others] : [others, compressed]
  }

  async #readLines(compressed: StoredTensor): Promise<Float64Array> {
    const lines = await numbers(compressed, 0, compressed.size)
    const isAscending = lines.every((start, line) => line === 0 || start >= lines[line - 1]!)
    if (isAscending && lines[0] === 0 && lines.at(-1) === this.#parts.stored) return lines
    const message = `${this.label}: the compressed indices must ascend from 0 to ${this.#parts.stored}.`
    throw new TileworkError('ERR_COO_INDEX', message)
  }
}

/** For each stored index the line that contains it. @param starts - of each line, and the end of the last */
function linesOf(starts: Float64Array, from: number, to: number): Float64Array {
  const lines = new Float64Array(to - from)
  let [low, high] = [0, starts.length - 1]
  while (high - low > 1) {
    const middle = (low + high) >> 1
    if (starts[middle]! <= from) low = middle
    else high = middle
  }
  for (let line = low, at = from; at < to; at++) {
    while (starts[line + 1]! <= at) line++
    lines[at - from] = line
  }
  return lines
}

/** Elements of an int64 or int32 tensor. Negative ones become numbers beyond every extent. */
async function numbers(
  { source, start, dtype }: StoredTensor,
  from: number,
  to: number,
): Promise<Float64Array> {
  const size = dtype === 'int64' ? 8 : 4
  const bytes = await source.read(start + from * size, start + to * size)
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength)
  const found = new Float64Array(to - from)
  for (let at = 0; at < found.length; at++) {
    const low = view.getUint32(at * size, true)
    const high =
      size === 8 ? view.getUint32(at * size + 4, true) : view.getInt32(at * size, true) < 0 ? 2 ** 21 : 0
    found[at] = Math.min(high * TWO_POW_32 + low, Number.MAX_SAFE_INTEGER)
  }
  return found
}

/** Index rows and values one after the other; no read crosses from one to the other. */
class PairSource implements ByteSource {
  readonly byteLength: number
  readonly label: string
  readonly #rows: IndexRowsSource
  readonly #values: StoredTensor

  constructor(rows: IndexRowsSource, values: StoredTensor) {
    this.#rows = rows
    this.#values = values
    this.label = rows.label
    this.byteLength = rows.byteLength + values.storage.byteLength
  }

  async read(start: number, end: number): Promise<Uint8Array> {
    const { byteLength } = this.#rows
    if (end <= byteLength) return this.#rows.read(start, end)
    const { source, start: base } = this.#values
    checkRange(start, end, this.byteLength, this.label)
    return source.read(base + start - byteLength, base + end - byteLength)
  }
}
