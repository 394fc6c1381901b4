/**
 * The functions that rebuild tensors, as descriptions of the tensors. Every number is checked here: the shape, and that the
 * farthest element lies in its storage. Source: `torch/_utils.py`.
 */
import type { FileFault } from '../../file_fault.js'
import { MAX_RANK } from '../schema.js'
import { TORCH_TYPES, type TorchType } from '../torch_types.js'
import { describeValue, type PickleMachine } from './machine.js'
import {
  PickleDict,
  PickleGlobal,
  PickleLayout,
  PickleOpaque,
  PickleTuple,
  type PickleValue,
  type Quantizer,
  type SparseForm,
  StorageValue,
  type StridedForm,
  TensorValue,
} from './values.js'

type Rebuild = (args: Arguments) => PickleValue

const FROM_TYPE = 'torch._tensor._rebuild_from_type_v2'

/** By name without the module. */
const REBUILDS: Readonly<Record<string, Rebuild>> = {
  _rebuild_tensor: (args) => new TensorValue(stridedOf(args, args.storageType(0)), false),
  _rebuild_tensor_v2: (args) => new TensorValue(stridedOf(args, args.storageType(0), 6), args.flag(4)),
  _rebuild_tensor_v3: (args) => new TensorValue(stridedOf(args, args.type(6), 7), args.flag(4)),
  _rebuild_parameter: (args) => new TensorValue(args.tensor(0).form, args.flag(1), true),
  _rebuild_parameter_with_state: (args) => new TensorValue(args.tensor(0).form, args.flag(1), true),
  _rebuild_qtensor: (args) => {
    const form = stridedOf(args, args.storageType(0))
    return new TensorValue({ ...form, quantizer: quantizerOf(args, form.shape) }, args.flag(5))
  },
  _rebuild_sparse_tensor: (args) => new TensorValue(sparseOf(args), false),
  _rebuild_sparse_csr_tensor: (args) => new TensorValue(sparseOf(args), false),
  _rebuild_meta_tensor_no_storage: (args) =>
    new TensorValue({ kind: 'meta', type: args.type(0), shape: args.counts(1) }, args.flag(3)),
  _rebuild_nested_tensor: (args) => {
    const [buffer, sizes, strides, offsets] = [args.tensor(0), args.tensor(1), args.tensor(2), args.tensor(3)]
    return new TensorValue({ kind: 'nested', buffer, sizes, strides, offsets }, false)
  },
  _rebuild_device_tensor_from_cpu_tensor: (args) => new TensorValue(args.tensor(0).form, args.flag(3)),
}

/** @throws FileFault for arguments that make no tensor, and for tensor subclasses */
export function rebuild(
  machine: PickleMachine,
  called: PickleGlobal,
  given: readonly PickleValue[],
): PickleValue {
  let [global, args] = [called, given]
  // Calls of itself could be nested as deep as a file likes, so they are followed in a loop.
  while (global.name === FROM_TYPE) {
    const [inner, type, innerArgs] = args
    if (type instanceof PickleOpaque || inner instanceof PickleOpaque) return type as PickleOpaque
    const isPlain =
      type instanceof PickleGlobal && /^torch\.(Tensor|nn\.parameter\.Parameter)$/.test(type.name)
    if (!isPlain || !(inner instanceof PickleGlobal) || !(innerArgs instanceof PickleTuple)) {
      throw machine.fault('ERR_UNSUPPORTED', `the tensor subclass ${describeValue(type ?? null)} is not read`)
    }
    ;[global, args] = [inner, innerArgs.items]
  }
  const run = global.kind === 'rebuild' ? REBUILDS[global.name.replace('torch._utils.', '')] : undefined
  if (!run) throw machine.fault('ERR_UNSUPPORTED', `a call of ${global.name} is not read`)
  if (args.some((arg) => arg instanceof PickleOpaque)) return args.find((arg) => arg instanceof PickleOpaque)!
  return run(new Arguments(machine, global.name, args))
}

/** The arguments of one call, each checked when it is taken. */
class Arguments {
  readonly machine: PickleMachine
  readonly #name: string
  readonly #args: readonly PickleValue[]

  constructor(machine: PickleMachine, name: string, args: readonly PickleValue[]) {
    this.machine = machine
    this.#name = name
    this.#args = args
  }

  wrong(index: number, wanted: string): FileFault {
    const value = this.#args[index]
    const found = value === undefined ? 'missing' : describeValue(value)
    return this.machine.fault(
      'ERR_HEADER',
      `argument ${index} of ${this.#name} is ${found}; it must be ${wanted}`,
    )
  }

  get(index: number): PickleValue | undefined {
    return this.#args[index]
  }

  storage(index: number): StorageValue {
    const value = this.#args[index]
    if (value instanceof StorageValue) return value
    throw this.wrong(index, 'a storage')
  }

  /** The element type of a storage; bytes where it has none. */
  storageType(index: number): TorchType {
    return this.storage(index).type ?? TORCH_TYPES.get('uint8')!
  }

  type(index: number): TorchType {
    const value = this.#args[index]
    const type =
      value instanceof PickleGlobal && value.kind === 'dtype'
        ? TORCH_TYPES.get(value.name.slice('torch.'.length))
        : undefined
    if (type) return type
    throw this.wrong(index, 'an element type')
  }

  tensor(index: number): TensorValue {
    return checkTensor(this.#args[index]) ?? fail(this.wrong(index, 'a tensor'))
  }

  flag(index: number): boolean {
    return this.#args[index] === true
  }

  count(index: number): number {
    const value = this.#args[index]
    if (isCount(value)) return value
    throw this.wrong(index, 'a whole number from 0 to 2^53 - 1')
  }

  /** A shape or strides. */
  counts(index: number): readonly number[] {
    const value = this.#args[index]
    if (!(value instanceof PickleTuple)) throw this.wrong(index, 'a tuple')
    const { items } = value
    if (items.length > MAX_RANK) {
      throw this.machine.fault('ERR_RANK', `a tensor has ${items.length} axes; the limit is ${MAX_RANK}`)
    }
    const bad = items.find((item) => !isCount(item))
    if (bad === undefined) return items as readonly number[]
    throw this.wrong(index, `whole numbers from 0 to 2^53 - 1, not ${describeValue(bad)}`)
  }
}

function isCount(value: PickleValue | undefined): value is number {
  return Number.isSafeInteger(value) && (value as number) >= 0
}

function checkTensor(value: PickleValue | undefined): TensorValue | undefined {
  return value instanceof TensorValue ? value : undefined
}

function fail(error: FileFault): never {
  throw error
}

/** @param metadataAt - the argument that holds the bits of conjugated and negated views; absent for functions without it */
function stridedOf(args: Arguments, type: TorchType, metadataAt?: number): StridedForm {
  const storage = args.storage(0)
  const [offset, shape, strides] = [args.count(1), args.counts(2), args.counts(3)]
  if (shape.length !== strides.length) {
    throw args.machine.fault('ERR_HEADER', `a tensor has ${shape.length} axes and ${strides.length} strides`)
  }
  const metadata = metadataAt === undefined ? undefined : args.get(metadataAt)
  const has = (bit: string): boolean => metadata instanceof PickleDict && metadata.entries.get(bit) === true
  const form: StridedForm = {
    kind: 'strided',
    storage,
    type,
    offset,
    shape,
    strides,
    conjugate: has('conj'),
    negative: has('neg'),
  }
  checkReach(form, args.machine)
  return form
}

/**
 * Checks that the farthest element lies in the storage. The numbers may be inexact above 2^53, where each sum is far beyond any
 * storage all the same.
 */
function checkReach({ storage, type, offset, shape, strides }: StridedForm, machine: PickleMachine): void {
  if (shape.includes(0)) return
  const last = shape.reduce((sum, size, axis) => sum + (size - 1) * strides[axis]!, offset)
  const bytes = storage.elements * (storage.type?.bytes ?? 1)
  if ((last + 1) * type.bytes <= bytes) return
  throw machine.fault(
    'ERR_OFFSET_RANGE',
    `a tensor of ${type.name} [${shape}] with strides [${strides}] from ${offset} exceeds its storage of ${bytes} bytes`,
  )
}

function quantizerOf(args: Arguments, shape: readonly number[]): Quantizer {
  const params = args.get(4)
  const items = params instanceof PickleTuple ? params.items : []
  const [scheme, scale, zeroPoint, axis] = items
  const name = scheme instanceof PickleGlobal && scheme.kind === 'scheme' ? scheme.name : ''
  if (name.startsWith('torch.per_tensor') && typeof scale === 'number' && typeof zeroPoint === 'number') {
    return { scale, zeroPoint }
  }
  const [scales, zeroPoints] = [checkTensor(scale), checkTensor(zeroPoint)]
  if (name.startsWith('torch.per_channel') && scales && zeroPoints && isCount(axis) && axis < shape.length) {
    return { scale: scales, zeroPoint: zeroPoints, axis }
  }
  throw args.wrong(4, 'a quantization scheme with its scales and zero points')
}

const LAYOUTS = ['coo', 'csr', 'csc', 'bsr', 'bsc'] as const

function sparseOf(args: Arguments): SparseForm {
  const named = args.get(0)
  const layout = LAYOUTS.find(
    (name) => named instanceof PickleLayout && named.name === `torch.sparse_${name}`,
  )
  if (layout === undefined) throw args.wrong(0, 'a sparse layout')
  const data = args.get(1)
  const items = data instanceof PickleTuple ? data.items : []
  // A last member says whether entries are in order; old files do not have it.
  const tensors = (layout === 'coo' ? [0, 1] : [0, 1, 2]).map((index) => checkTensor(items[index]))
  const size = new Arguments(args.machine, 'a sparse tensor', items).counts(tensors.length)
  const known = tensors.filter((tensor) => tensor !== undefined)
  if (known.length !== tensors.length) throw args.wrong(1, 'tensors of indices and values')
  return { kind: 'sparse', layout, shape: size, indices: known.slice(0, -1), values: known.at(-1)! }
}
