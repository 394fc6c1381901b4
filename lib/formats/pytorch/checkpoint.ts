/** The tensors of one file with their names: nested tensors in parts, scales read, and which names mean one tensor. */
import type { QuantizationParameters } from '../../tensor/quantization.js'
import type { Budget } from '../budget.js'
import { exactSizeOf, multiply } from '../exact_size.js'
import { FileFault } from '../file_fault.js'
import { quote } from '../quote.js'
import type { Report } from '../report.js'
import type { HeapBudget } from './heap_budget.js'
import { makeStrided, storageBytes, type TensorFile } from './make_tensor.js'
import type {
  MetaForm,
  NestedForm,
  PickleValue,
  Quantizer,
  SparseForm,
  StridedForm,
  TensorValue,
} from './pickle/values.js'
import { type PytorchValue, plainValue } from './plain_values.js'
import { checkParts } from './sparse.js'
import { type Leaf, leavesOf } from './tree.js'

/** How a checkpoint is stored: an archive of `torch.save` or `torch.jit.save`, or the stream of torch before 1.6. */
export type PytorchContainer = 'zip' | 'torchscript' | 'legacy'

/** What a pickle holds. */
export interface Root {
  /** Starts the names of its parts; absent for the object itself. */
  readonly key?: string
  readonly value: PickleValue
}

/** The object of a file, before its parts have names. */
export interface ReadObject {
  readonly container: PytorchContainer
  readonly file: TensorFile
  readonly roots: readonly Root[]
  /** Bytes of all pickles, and the offset of the first. */
  readonly pickleBytes: number
  readonly offset: number
}

/** A tensor that is made when someone asks for it. */
export interface NamedTensor {
  readonly name: string
  readonly file: TensorFile
  readonly form: StridedForm | MetaForm | SparseForm
  readonly requiresGrad: boolean
  readonly quantization?: QuantizationParameters
  /** The first name of the same tensor, for the others. */
  readonly aliasOf?: string
}

export interface Checkpoint {
  readonly container: PytorchContainer
  readonly tensors: readonly NamedTensor[]
  readonly values: ReadonlyMap<string, PytorchValue>
}

interface Means {
  readonly budget: Budget
  readonly heap: HeapBudget
  readonly report: Report
}

/** @throws FileFault, TileworkError for tensors that cannot be read */
export async function nameParts(read: ReadObject, means: Means): Promise<Checkpoint> {
  const { container, file, roots, pickleBytes, offset } = read
  const bounds = { heap: means.heap, maxDepth: means.budget.limit('depth'), pickleBytes, offset }
  const leaves = leavesOf(roots, bounds)
  means.budget.require('tensors', leaves.tensors.length, offset)
  const names = new UniqueNames(means.report, offset)
  const tensors: NamedTensor[] = []
  const quantizations = new Map<Quantizer, QuantizationParameters>()
  for (const leaf of leaves.tensors) {
    const name = names.nameOf(leaf)
    const { form, requiresGrad } = leaf.value
    if (form.kind === 'nested') {
      for (const part of await nestedParts(form, { name, file, offset })) {
        means.budget.demand('totalBytes', bytesOf(part.form), offset)
        tensors.push({ ...part, file, requiresGrad })
      }
      continue
    }
    means.budget.demand('totalBytes', bytesOf(form), offset)
    if (form.kind === 'sparse') checkParts(form, name)
    noteType(form, name, means.report, offset)
    const quantizer = form.kind === 'strided' ? form.quantizer : undefined
    const known =
      quantizer && (quantizations.get(quantizer) ?? (await readQuantizer(quantizer, form, file, offset)))
    if (quantizer && known) quantizations.set(quantizer, known)
    tensors.push({ name, file, form, requiresGrad, ...(known && { quantization: known }) })
  }
  means.budget.require('tensors', tensors.length, offset)
  return { container, tensors: withAliases(tensors), values: valuesOf(leaves.values, file) }
}

class UniqueNames {
  readonly #taken = new Set<string>()
  readonly #report: Report
  readonly #offset: number

  constructor(report: Report, offset: number) {
    this.#report = report
    this.#offset = offset
  }

  /** The name of a leaf; its path as JSON where another has the name. */
  nameOf(leaf: Leaf): string {
    if (!this.#taken.has(leaf.name)) {
      this.#taken.add(leaf.name)
      return leaf.name
    }
    const path = leaf.path()
    const message = `Two tensors have the name ${quote(leaf.name)}; the second is named ${quote(path)}.`
    this.#report.note('ERR_DUPLICATE', message, {
      path: `tensors[${quote(leaf.name)}]`,
      offset: this.#offset,
    })
    this.#taken.add(path)
    return path
  }
}

function valuesOf(leaves: readonly Leaf[], file: TensorFile): ReadonlyMap<string, PytorchValue> {
  const values = new Map<string, PytorchValue>()
  for (const leaf of leaves) {
    const name = values.has(leaf.name) ? leaf.path() : leaf.name
    values.set(
      name,
      plainValue(leaf.value, (storage) => storageBytes(file, storage, name)),
    )
  }
  return values
}

/** Bytes of a tensor's elements; the budget takes sizes beyond 2^53 as infinite. */
function bytesOf(form: NamedTensor['form']): number {
  if (form.kind === 'sparse') return bytesOf(form.values.form as StridedForm)
  return form.kind === 'meta' ? 0 : Number(multiply(exactSizeOf(form.shape).elements, form.type.bytes))
}

function noteType(form: NamedTensor['form'], name: string, report: Report, offset: number): void {
  if (form.kind === 'sparse' || !form.type.isRaw) return
  const { name: type, dtype } = form.type
  const message = `tensor ${quote(name)} is ${type}, which has no counterpart; its bits are read as ${dtype}.`
  report.note('ERR_DTYPE', message, { path: `tensors[${quote(name)}]`, offset })
}

/** Names the first of several tensors with the same elements in each of the others. */
function withAliases(tensors: readonly NamedTensor[]): readonly NamedTensor[] {
  const first = new Map<unknown, string>()
  return tensors.map((tensor) => {
    const { form, name } = tensor
    const identity = form.kind === 'strided' ? identityOf(form) : form
    const known = first.get(identity)
    if (known === undefined) first.set(identity, name)
    return known === undefined ? tensor : { ...tensor, aliasOf: known }
  })
}

/** Differs where the elements are others, or mean others. */
function identityOf({
  storage,
  type,
  offset,
  shape,
  strides,
  conjugate,
  negative,
  quantizer,
}: StridedForm): unknown {
  if (quantizer) return quantizer
  return `${type.name} ${offset} ${shape} ${strides} ${conjugate} ${negative} ${storage.offset} ${storage.key}`
}

async function readQuantizer(
  { scale, zeroPoint, axis }: Quantizer,
  { shape }: Pick<StridedForm, 'shape'>,
  file: TensorFile,
  offset: number,
): Promise<QuantizationParameters> {
  if (axis === undefined) return { scale: scale as number, zeroPoint: zeroPoint as number }
  const read = (tensor: number | TensorValue) =>
    smallNumbers(tensor as TensorValue, [shape[axis]!], { file, offset })
  return { scale: await read(scale), zeroPoint: await read(zeroPoint), axis }
}

interface Place {
  readonly file: TensorFile
  readonly offset: number
}

/**
 * The elements of a tensor that describes another one.
 *
 * @throws FileFault ERR_HEADER unless it has that shape, and each element has bytes of its own: a file could else have any number
 */
async function smallNumbers(
  { form }: TensorValue,
  shape: readonly number[],
  { file, offset }: Place,
): Promise<number[]> {
  const isFitting = form.kind === 'strided' && `${form.shape}` === `${shape}`
  if (!isFitting || bytesOf(form) > (file.storages.byKey.get(form.storage.key)?.place?.byteLength ?? 0)) {
    throw new FileFault('ERR_HEADER', `A tensor that describes another must hold [${shape}] numbers.`, offset)
  }
  const tensor = makeStrided(file, form, { name: '', requiresGrad: false })
  const values = (await tensor.toTypedArray()) as ArrayLike<number | bigint>
  return Array.from(values, Number)
}

/** The parts of a nested tensor, as `name.0`, `name.1`, …: sizes, strides and offsets of each are tensors. */
async function nestedParts(
  { buffer, sizes, strides, offsets }: NestedForm,
  { name, file, offset }: Place & { readonly name: string },
): Promise<{ name: string; form: StridedForm }[]> {
  const { form } = buffer
  const table = sizes.form
  if (
    form.kind !== 'strided' ||
    table.kind !== 'strided' ||
    table.shape.length !== 2 ||
    form.shape.length !== 1
  ) {
    throw new FileFault(
      'ERR_HEADER',
      `tensor ${quote(name)} is nested; its buffer or its sizes are wrong.`,
      offset,
    )
  }
  const [count, rank] = table.shape as readonly [number, number]
  const place = { file, offset }
  const size = await smallNumbers(sizes, [count, rank], place)
  const stride = await smallNumbers(strides, [count, rank], place)
  const start = await smallNumbers(offsets, [count], place)
  return start.map((from, part) => {
    const shape = size.slice(part * rank, (part + 1) * rank)
    const distances = stride.slice(part * rank, (part + 1) * rank)
    const last = shape.reduce((sum, extent, axis) => sum + (extent - 1) * distances[axis]!, from)
    const numbers = [...shape, ...distances, from]
    const isInside = shape.includes(0) || last < form.shape[0]!
    if (!isInside || numbers.some((number) => !Number.isSafeInteger(number) || number < 0)) {
      const message = `Part ${part} of the nested tensor ${quote(name)} exceeds its buffer of ${form.shape[0]} elements.`
      throw new FileFault('ERR_OFFSET_RANGE', message, offset)
    }
    const step = form.strides[0]!
    const moved = { offset: form.offset + from * step, strides: distances.map((distance) => distance * step) }
    return { name: `${name}.${part}`, form: { ...form, shape, ...moved } }
  })
}

/** Groups of names that mean one tensor, the first name first. */
export function sharedNames(tensors: readonly NamedTensor[]): readonly (readonly string[])[] {
  const groups = new Map<string, string[]>()
  for (const { name, aliasOf } of tensors) {
    if (aliasOf === undefined) continue
    const group = groups.get(aliasOf)
    if (group) group.push(name)
    else groups.set(aliasOf, [aliasOf, name])
  }
  return [...groups.values()]
}
