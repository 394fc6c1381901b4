/**
 * numpy's type strings: byte order (`<`, `>`, `|` none, `=` the machine's), a letter, the size of an item in bytes
 * (of `U` in characters), for dates the unit. Source: numpy's documentation of the array interface and of dtypes.
 */
import { DTYPES, type Dtype, dtypesBy } from '../../dtype/dtypes.js'
import { TileworkError } from '../../errors.js'
import type { Tensor } from '../../tensor/tensor.js'
import { quote } from './literal.js'
import { DESCR_KEY, MAX_ITEM_BYTES } from './schema.js'

/** What one item of an array is. */
export interface ItemType {
  /** `bytes` and `text` are strings of fixed length: bytes, or 4-byte code points. */
  readonly kind: 'number' | 'bytes' | 'text'
  readonly dtype: Dtype
  readonly itemBytes: number
  /** Bytes that change places in big-endian data: the item, or one half of a complex number. 0 where none do. */
  readonly swapBytes: 0 | 2 | 4 | 8
  /** The type string to be kept, little-endian, where the dtype alone does not give it again. */
  readonly descr?: string
  /** True for `=`, and for items of several bytes without any order: the machine that wrote the file knows it. */
  readonly isOrderUnknown: boolean
}

/** Letter and size of numpy's types that are tilework's too; numpy reads `?` as well as `b1`, and writes the latter. */
const DTYPE_BY_CODE: ReadonlyMap<string, Dtype> = new Map([...dtypesBy('numpy'), ['?', 'bool']])

/** Raw items of these sizes are read as unsigned numbers; numpy writes the small floats of other packages so. */
const DTYPE_BY_RAW_BYTES: ReadonlyMap<number, Dtype> = new Map([
  [1, 'uint8'],
  [2, 'uint16'],
  [4, 'uint32'],
  [8, 'uint64'],
])

/** Dates and spans of time count units in 64 bits; the unit, perhaps several of it, stands in brackets. */
const DATE = /^[mM]8(?:\[(?:\d{0,10}(?:Y|M|W|D|h|m|s|ms|us|ns|ps|fs|as)|generic)\])?$/

const TYPE_STRING = /^([<>|=]?)(.*)$/s

/** @throws TileworkError ERR_DTYPE for what is no type, ERR_UNSUPPORTED with the reason for what cannot be read */
export function parseDescr(descr: string): ItemType {
  const [, order = '', code = ''] = TYPE_STRING.exec(descr) ?? []
  const dtype = DTYPE_BY_CODE.get(code)
  if (dtype !== undefined) return numberType(dtype, order)
  if (DATE.test(code)) return { ...numberType('int64', order), descr: `<${code}` }
  const [, letter = '', digits = ''] = /^([SaUV])(\d{1,10})$/.exec(code) ?? []
  if (letter === 'V') return rawType(descr, Number(digits))
  if (letter !== '') return stringType(descr, letter, order, Number(digits))
  throw refusal(descr, code)
}

function numberType(dtype: Dtype, order: string): ItemType {
  const { bits, kind } = DTYPES[dtype]
  const itemBytes = bits / 8
  const unit = kind === 'complex' ? itemBytes / 2 : itemBytes
  return {
    kind: 'number',
    dtype,
    itemBytes,
    swapBytes: order === '>' && unit > 1 ? (unit as 2 | 4 | 8) : 0,
    isOrderUnknown: unit > 1 && order !== '<' && order !== '>',
  }
}

/** Raw items have no byte order: numpy leaves their bytes alone whatever the mark says. */
function rawType(descr: string, itemBytes: number): ItemType {
  const dtype = DTYPE_BY_RAW_BYTES.get(itemBytes)
  if (dtype !== undefined) {
    return { kind: 'number', dtype, itemBytes, swapBytes: 0, descr: `|V${itemBytes}`, isOrderUnknown: false }
  }
  const message = `Its type is ${quote(descr)}, raw items of ${itemBytes} bytes; those of 1, 2, 4 and 8 can be read.`
  throw new TileworkError('ERR_UNSUPPORTED', message)
}

function stringType(descr: string, letter: string, order: string, length: number): ItemType {
  const isText = letter === 'U'
  const itemBytes = length * (isText ? 4 : 1)
  // Items of no bytes would let some bytes of header stand for any number of strings.
  if (itemBytes === 0 || itemBytes > MAX_ITEM_BYTES) {
    const message = `Its type ${quote(descr)} has items of ${itemBytes} bytes; 1 to ${MAX_ITEM_BYTES} are possible.`
    throw new TileworkError('ERR_DTYPE', message)
  }
  return {
    kind: isText ? 'text' : 'bytes',
    dtype: 'string',
    itemBytes,
    swapBytes: isText && order === '>' ? 4 : 0,
    descr: isText ? `<U${length}` : `|S${length}`,
    isOrderUnknown: isText && order !== '<' && order !== '>',
  }
}

function refusal(descr: string, code: string): TileworkError {
  const what = `Its type is ${quote(descr)}`
  if (/^O\d*$/.test(code)) {
    const reason = 'Python objects in a pickle, which runs code when it is loaded'
    return new TileworkError('ERR_UNSUPPORTED', `${what}: ${reason}; tilework never reads one.`)
  }
  if (/^(?:g|G|f12|f16|c24|c32)$/.test(code)) {
    const reason = 'a long double, whose bits differ from machine to machine'
    return new TileworkError('ERR_UNSUPPORTED', `${what}, ${reason}; save it as float64.`)
  }
  return new TileworkError('ERR_DTYPE', `${what}, which is no type of numpy's that can be read.`)
}

/** Small floats as numpy writes those of the package ml_dtypes: raw items, which that package takes back by a view. */
const RAW_CODE: ReadonlyMap<Dtype, string> = new Map(
  Object.values(DTYPES)
    .filter(({ mlDtypes, bits }) => mlDtypes !== undefined && bits >= 8)
    .map(({ name, bits }) => [name, bits === 8 ? '|V1' : `<V${bits / 8}`]),
)

/** The type string of a dense tensor; undefined where numpy has no type for it. */
export function descrOf(tensor: Tensor): string | undefined {
  const { dtype } = tensor
  const kept = keptDescr(tensor)
  if (kept?.kind === 'number' && kept.dtype === dtype) return kept.descr
  const { bits, numpy: code } = DTYPES[dtype]
  if (code === undefined) return RAW_CODE.get(dtype)
  return `${bits === 8 ? '|' : '<'}${code}`
}

/** The type that a tensor had in the npy file it came from, where it still says so. */
export function keptDescr(tensor: Tensor): ItemType | undefined {
  // Tensors of a user's own may be plain objects without metadata.
  const descr = tensor.metadata?.get(DESCR_KEY)
  if (descr === undefined) return undefined
  try {
    return parseDescr(descr)
  } catch {
    // Metadata are anyone's to set; a type that cannot be read is as good as none.
    return undefined
  }
}
