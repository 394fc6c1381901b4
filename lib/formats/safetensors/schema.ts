/**
 * safetensors, the weight file of Hugging Face: the constants of the format and the limits of reading it.
 *
 *     file    = N u64 · header (N bytes of JSON) · byte buffer
 *     header  = { name: {dtype, shape, data_offsets: [begin, end]}, … , "__metadata__": {string: string} }
 *     index   = { "metadata": {"total_size": bytes}, "weight_map": {name: file} }    beside its files ("shards")
 *
 * Little-endian, row-major; the offsets are relative to the byte buffer, which the tensors cover without gaps and without
 * overlap. The header starts with `{` and may end in spaces.
 *
 * Source: README.md ("Format") and `safetensors/src/tensor.rs` in the repository huggingface/safetensors at commit
 * 24b0b285; the index as `split_state_dict_into_shards_factory` and `save_torch_state_dict` of
 * huggingface/huggingface_hub write it. Where the README is silent, the code decides.
 */
import { DTYPES, type Dtype, type SafetensorsDtype } from '../../dtype/dtypes.js'
import { MAX_AXES } from '../../tensor/shape.js'
import type { DefaultLimits } from '../budget.js'

export const FORMAT_NAME = 'safetensors'

/** The one key of the header that is not a tensor. */
export const METADATA_KEY = '__metadata__'

/**
 * Prefix of metadata keys that hold a tensor's layout; the tensor's name follows. The format itself has row-major arrays
 * only, so the storage of a blocked tensor is written as one.
 */
export const LAYOUT_KEY_PREFIX = 'tilework.layout.'

/** Size of the header length field. */
export const LENGTH_BYTES = 8

export interface TensorCode {
  readonly code: string
  readonly bits: number
  readonly dtype: SafetensorsDtype
}

/**
 * Position of each dtype in the reference's enumeration. The reference's writer sorts tensors by it in descending order, so that
 * each type is aligned to its size.
 */
const POSITIONS: Readonly<Record<SafetensorsDtype, number>> = {
  bool: 0,
  float4_e2m1fn: 1,
  float6_e2m3fn: 2,
  float6_e3m2fn: 3,
  uint8: 4,
  int8: 5,
  float8_e5m2: 6,
  float8_e4m3fn: 7,
  float8_e8m0fnu: 8,
  float8_e4m3fnuz: 9,
  float8_e5m2fnuz: 10,
  int16: 11,
  uint16: 12,
  float16: 13,
  bfloat16: 14,
  int32: 15,
  uint32: 16,
  float32: 17,
  complex64: 18,
  float64: 19,
  int64: 20,
  uint64: 21,
}

/** Dtypes in the order of the reference's enumeration. */
export const TENSOR_CODES: readonly TensorCode[] = Object.values<TensorCode>(
  Object.fromEntries(Object.entries(POSITIONS).map(([dtype, at]) => [at, codeOf(dtype as SafetensorsDtype)])),
)

function codeOf(dtype: SafetensorsDtype): TensorCode {
  const { safetensors, bits } = DTYPES[dtype]
  return { code: safetensors!, bits, dtype }
}

/** Position in {@link TENSOR_CODES} by the name in the header. A Map: names like `constructor` are not codes. */
export const RANK_OF_CODE: ReadonlyMap<string, number> = new Map(
  TENSOR_CODES.map(({ code }, rank) => [code, rank]),
)

/** Position in {@link TENSOR_CODES} by dtype. */
export const RANK_OF_DTYPE: ReadonlyMap<Dtype, number> = new Map(
  TENSOR_CODES.map(({ dtype }, rank) => [dtype, rank]),
)

/** Maximum header size: the reference refuses larger ones, so that no file makes it parse JSON for minutes. */
export const FORMAT_HEADER_BYTES = 100_000_000

/** Limits of reading a file, or an index with its shards. */
export const DEFAULT_LIMITS = {
  /** About the number of entries in a header of the maximum size, at about 50 bytes per entry. */
  tensors: 2 ** 21,
  /** All headers of an open together, an index and its shards included. */
  headerBytes: FORMAT_HEADER_BYTES,
  /**
   * Without overlap the sum is below the size of the file; with overlap a file of some megabytes could make a program that loads
   * all of it allocate without bound.
   */
  totalBytes: { perFileByte: 4 },
} as const satisfies DefaultLimits

/** The reference has no limit; numpy's limit is 64. Each axis takes 8 bytes of memory for 2 bytes in the file. */
export const MAX_RANK = MAX_AXES

/**
 * Maximum metadata entries, which take about 210 bytes of memory each, 64 MiB in total. Without the limit a header of
 * two-character strings could have ten million entries, which take thirty times its bytes.
 */
export const MAX_METADATA_ENTRIES = 2 ** 18

/** Maximum characters of a layout entry: enough for a shape and two paddings of the maximum rank. */
export const MAX_LAYOUT_ENTRY_LENGTH = 16_384

/** Element and bit counts wrap at this value; the reference refuses them. */
export const COUNT_LIMIT = 2n ** 64n

/** Extension of an index. */
export const INDEX_EXTENSION = '.index.json'

/** Characters of a name in a message: names may have megabytes. */
const SHOWN_LENGTH = 80

/** A name or text from a file, quoted and short. */
export function quote(text: string): string {
  return text.length <= SHOWN_LENGTH
    ? JSON.stringify(text)
    : `${JSON.stringify(text.slice(0, SHOWN_LENGTH))}…`
}

/** The path of a tensor in findings. Built only for a finding: a header may have millions of names. */
export function tensorPath(name: string): string {
  return `tensors[${quote(name)}]`
}
