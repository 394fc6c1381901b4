/** Invalid arguments cause only TileworkErrors: thrown, as a rejection, or when the result is read. */
import { expect, it } from 'vitest'
import { MemorySource } from '../../lib/bytes/memory.js'
import { TileworkError } from '../../lib/errors.js'
import { btf } from '../../lib/formats/btf/index.js'
import { checkLimits } from '../../lib/formats/limits.js'
import { asTensor } from '../../lib/tensor/adapters.js'
import { asLayout } from '../../lib/tensor/as_layout.js'
import { tensor } from '../../lib/tensor/from_values.js'
import { CooTensor, sparseFromDense } from '../../lib/tensor/sparse.js'
import type { DenseTensor, SparseTensor, Tensor } from '../../lib/tensor/tensor.js'
import { hostileValues, nonsense } from './nonsense.js'

const good = tensor([1, 2, 3, 4], { dtype: 'int8', shape: [2, 2], name: 'good' })
const sparse = new CooTensor({
  source: new MemorySource(new Uint8Array(9)),
  indicesStart: 0,
  valuesStart: 8,
  entryCount: 1,
  dtype: 'int8',
  shape: [3],
})
const userSparse = (change: object): SparseTensor => ({
  kind: 'sparse',
  name: 'mine',
  dtype: 'int8',
  shape: [3],
  size: 3,
  sizeExact: 3n,
  hasData: true,
  metadata: new Map(),
  entryCount: 1,
  entries: () => sparse.entries(),
  indices: () => sparse.indices(),
  values: () => sparse.values(),
  toDense: (options) => sparse.toDense(options),
  ...change,
})

/** Reads the result of a call in every way. */
async function use(result: unknown): Promise<void> {
  const made = (await result) as Tensor | undefined
  if (made?.kind === 'dense') {
    await made.bytes()
    await made.toTypedArray()
    made.bytesSync()
  } else if (made?.kind === 'sparse') {
    for await (const entry of made.entries()) void entry
    await made.toDense({ maxBytes: 1000 })
  }
}

/** Description of an error that is not a TileworkError; undefined otherwise. */
async function fault(call: () => unknown): Promise<string | undefined> {
  try {
    await use(call())
    return undefined
  } catch (error) {
    if (error instanceof TileworkError) return undefined
    return error instanceof Error
      ? `${error.name}: ${error.message}\n${error.stack}`
      : `threw ${typeof error}`
  }
}

const x = (value: unknown): never => value as never

const CALLS: Record<string, (value: unknown) => unknown> = {
  'tensor(x)': (value) => tensor(x(value)),
  'tensor(x, { dtype })': (value) => tensor(x(value), { dtype: 'int8' }),
  'tensor([x], { dtype: float16 })': (value) => tensor(x([value]), { dtype: 'float16' }),
  'tensor([1, x], { dtype: bool })': (value) => tensor(x([1, value]), { dtype: 'bool' }),
  'tensor([1], x)': (value) => tensor([1], x(value)),
  'tensor(…, { dtype: x })': (value) => tensor([1], { dtype: x(value) }),
  'tensor(…, { shape: x })': (value) => tensor([1], { dtype: 'int8', shape: x(value) }),
  'tensor(…, { shape: [x] })': (value) => tensor([1], { dtype: 'int8', shape: x([value]) }),
  'tensor(…, { name: x })': (value) => tensor([1], { dtype: 'int8', name: x(value) }),
  'asTensor(x)': (value) => asTensor(x(value)),
  'asTensor(…, x)': (value) => asTensor(new Uint8Array(2), x(value)),
  'asTensor(…, { dtype: x })': (value) => asTensor(new Uint8Array(2), { dtype: x(value) }),
  'asTensor(…, { shape: x })': (value) => asTensor(new Uint8Array(2), { shape: x(value) }),
  'asTensor(…, { name: x })': (value) => asTensor(new Uint8Array(2), { name: x(value) }),
  'asTensor({ dims: x })': (value) => asTensor({ dims: x(value), type: 'int8', data: new Uint8Array(2) }),
  'asTensor({ data: x })': (value) => asTensor({ dims: [2], type: 'int8', data: value }),
  'asTensor({ dtype: x })': (value) =>
    asTensor({ dtype: x(value), shape: [2], bytes: () => new Uint8Array(2) }),
  'asTensor({ bytes: () => x })': (value) => asTensor({ dtype: 'int8', shape: [2], bytes: () => x(value) }),
  'asTensor({ bytesSync: () => x })': (value) =>
    asTensor({
      dtype: 'int8',
      shape: [2],
      bytes: () => Promise.reject(value),
      bytesSync: () => x(value),
    }),
  'asTensor({ data: () => x })': (value) =>
    asTensor({
      dtype: 'int8',
      shape: [2],
      data: async () => value,
      dataSync: () => {
        throw value
      },
    }),
  'asLayout(x, …)': (value) => asLayout(x(value), 'row_major', [4]),
  'asLayout(…, x, …)': (value) => asLayout(good, x(value), [2, 2]),
  'asLayout(…, …, x)': (value) => asLayout(good, 'row_major', x(value)),
  'asLayout(…, …, …, x)': (value) => asLayout(good, 'row_major', [4], x(value)),
  'asLayout(…, { lower: x })': (value) => asLayout(good, 'row_major', [4], { lower: x(value) }),
  'sparseFromDense(x)': (value) => sparseFromDense(x(value)),
  'sparseFromDense(…, x)': (value) => sparseFromDense(good, x(value)),
  'sparseFromDense(…, { name: x })': (value) => sparseFromDense(good, { name: x(value) }),
  'sparseFromDense(…, { keepZeros: x })': (value) => sparseFromDense(good, { keepZeros: x(value) }),
  'toDense(x)': (value) => sparse.toDense(x(value)),
  'toDense({ maxBytes: x })': (value) => sparse.toDense({ maxBytes: x(value) }),
  'at(x)': (value) => good.at(x(value), 0),
  'at(…x)': (value) => good.at(0, x(value), x(value)),
  'checkLimits(x)': (value) => checkLimits(value),
  'checkLimits({ tensors: x })': (value) => checkLimits({ tensors: value }),
  'plan([x])': (value) => btf.plan([x(value)]),
  'plan(…, { cooLayoutCode: x })': (value) => btf.plan([], { cooLayoutCode: x(value) }),
  'plan([{ indices: () => x }])': (value) => btf.plan([userSparse({ indices: async () => value })]),
  'plan([{ values: () => x }])': (value) => btf.plan([userSparse({ values: async () => value })]),
  'plan([{ entryCount: x }])': (value) => btf.plan([userSparse({ entryCount: value })]),
  'plan([{ shape: x }])': (value) => btf.plan([userSparse({ shape: value })]),
  'plan([{ dtype: x }])': (value) => btf.plan([userSparse({ dtype: value })]),
  'plan([{ storage: x }])': (value) => btf.plan([{ ...(good as DenseTensor), storage: x(value) }]),
}

it.each(Object.keys(CALLS))('%s', async (name) => {
  const call = CALLS[name]!
  for (const [number, value] of [...nonsense(), ...hostileValues()].entries()) {
    expect(await fault(() => call(value)), `value ${number}`).toBe(undefined)
  }
})

it('limits are checked by name and number', () => {
  expect(checkLimits(undefined)).toEqual({})
  expect(checkLimits({ tensors: 5, totalBytes: undefined })).toEqual({ tensors: 5 })
  expect(checkLimits({ headerBytes: Number.POSITIVE_INFINITY })).toEqual({
    headerBytes: Number.POSITIVE_INFINITY,
  })
  for (const limits of [
    null,
    5,
    'x',
    { tensors: Number.NaN },
    { tensors: -1 },
    { tensors: '5' },
    { tensor: 5 },
  ]) {
    expect(() => checkLimits(limits)).toThrow(expect.objectContaining({ code: 'ERR_ARGUMENT' }))
  }
})
