/**
 * The element types of torch and the classes of its storages. Source: `c10/core/ScalarType.h` and `torch/storage.py` of
 * PyTorch 2.14.
 */
import type { Dtype } from '../../dtype/dtypes.js'

/** An element type of torch, and how it is shown here. */
export interface TorchType {
  /** The name without `torch.`. */
  readonly name: string
  /** Bytes of an element. */
  readonly bytes: number
  readonly dtype: Dtype
  /** Elements of `dtype` in one of torch: 2 for a pair of floats in one byte. */
  readonly parts: number
  /** `axis`: the parts are one more axis. `last`: they widen the last axis. Absent where there is one part. */
  readonly spread?: 'axis' | 'last'
  /** Bytes that are swapped in a big-endian file: those of one component of a complex number. */
  readonly swapBytes: number
  /** True where `dtype` says less than the name: the bytes are shown, and a finding says so. */
  readonly isRaw: boolean
}

type Row = readonly [names: string, bytes: number, dtype: Dtype, more?: Partial<TorchType>]

const RAW = { isRaw: true } as const
/** Two 16-bit floats in an element. */
const PAIR = { isRaw: true, parts: 2, spread: 'axis', swapBytes: 2 } as const

const ROWS: readonly Row[] = [
  ['float64', 8, 'float64'],
  ['float32', 4, 'float32'],
  ['float16', 2, 'float16'],
  ['bfloat16', 2, 'bfloat16'],
  ['complex128', 16, 'complex128', { swapBytes: 8 }],
  ['complex64', 8, 'complex64', { swapBytes: 4 }],
  ['complex32 bcomplex32', 4, 'uint16', PAIR],
  ['int64', 8, 'int64'],
  ['int32', 4, 'int32'],
  ['int16', 2, 'int16'],
  ['int8', 1, 'int8'],
  ['uint8', 1, 'uint8'],
  ['uint16', 2, 'uint16'],
  ['uint32', 4, 'uint32'],
  ['uint64', 8, 'uint64'],
  ['bool', 1, 'bool'],
  ['float8_e4m3fn', 1, 'float8_e4m3fn'],
  ['float8_e4m3fnuz', 1, 'float8_e4m3fnuz'],
  ['float8_e5m2', 1, 'float8_e5m2'],
  ['float8_e5m2fnuz', 1, 'float8_e5m2fnuz'],
  ['float8_e8m0fnu', 1, 'float8_e8m0fnu'],
  // Two elements in a byte, the first in the low bits. torch counts bytes.
  ['float4_e2m1fn_x2', 1, 'float4_e2m1fn', { parts: 2, spread: 'last' }],
  ['qint8', 1, 'int8'],
  ['quint8', 1, 'uint8'],
  ['qint32', 4, 'int32'],
  ['bits16', 2, 'uint16', RAW],
  ['bits8 bits1x8 bits2x4 bits4x2 quint4x2 quint2x4', 1, 'uint8', RAW],
  ['uint1 uint2 uint3 uint4 uint5 uint6 uint7', 1, 'uint8', RAW],
  ['int1 int2 int3 int4 int5 int6 int7', 1, 'int8', RAW],
]

/** By name without `torch.`. */
export const TORCH_TYPES: ReadonlyMap<string, TorchType> = new Map(
  ROWS.flatMap(([names, bytes, dtype, more]) =>
    names
      .split(' ')
      .map((name): [string, TorchType] => [
        name,
        { name, bytes, dtype, parts: 1, swapBytes: bytes, isRaw: false, ...more },
      ]),
  ),
)

const STORAGE_TYPES = {
  Double: 'float64',
  Float: 'float32',
  Half: 'float16',
  BFloat16: 'bfloat16',
  ComplexDouble: 'complex128',
  ComplexFloat: 'complex64',
  Long: 'int64',
  Int: 'int32',
  Short: 'int16',
  Char: 'int8',
  Byte: 'uint8',
  Bool: 'bool',
  QInt8: 'qint8',
  QUInt8: 'quint8',
  QInt32: 'qint32',
  QUInt4x2: 'quint4x2',
  QUInt2x4: 'quint2x4',
} as const

/** Names of the classes of typed storages, `Float` for `FloatStorage` and `FloatTensor`. */
export const TYPED_CLASSES: readonly string[] = Object.keys(STORAGE_TYPES)

/** The element type of a storage by the full name of its class; undefined for UntypedStorage, whose elements are bytes. */
export function typeOfStorage(className: string): TorchType | undefined {
  const kind = /([A-Za-z0-9]+)Storage$/.exec(className)?.[1]
  const name = STORAGE_TYPES[kind as keyof typeof STORAGE_TYPES] as string | undefined
  return name === undefined ? undefined : TORCH_TYPES.get(name)
}
