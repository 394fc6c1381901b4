/**
 * Parses and prints numpy's type strings: byte order (`<`, `>`, `|` for none, `=` for the machine's), a letter, the item
 * size in bytes (in characters for `U`), and the unit of dates. Source: numpy's documentation of the array interface and
 * of dtypes.
 */
import { DTYPES, type Dtype, dtypesBy } from '../../dtype/dtypes.js'
import { TileworkError } from '../../errors.js'
import type { Tensor } from '../../tensor/tensor.js'
import { quote } from '../quote.js'
import { DESCR_KEY, MAX_ITEM_BYTES } from './schema.js'

/** The type of one item of an array. */
export interface ItemType {
  /** `bytes` and `text` are strings of fixed length: bytes, or 4-byte code points. */
  readonly kind: 'number' | 'bytes' | 'text'
  readonly dtype: Dtype
  readonly itemBytes: number
  /** Unit of byte swapping in big-endian data: the item, or half of a complex number. 0 where nothing is swapped. */
  readonly swapBytes: 0 | 2 | 4 | 8
  /** The little-endian type string, kept where the dtype alone does not restore it. */
  readonly descr?: string
  /** True for `=`, and for items of several bytes without a byte order: only the writing machine knew it. */
  readonly isOrderUnknown: boolean
}

/** Element types by letter and size. numpy reads both `?` and `b1`, and writes `b1`. */
const DTYPE_BY_CODE: ReadonlyMap<string, Dtype> = new Map([...dtypesBy('numpy'), ['?', 'bool']])

/** Raw items of these sizes are read as unsigned integers. numpy writes the small floats of ml_dtypes as raw items. */
const DTYPE_BY_RAW_BYTES: ReadonlyMap<number, Dtype> = new Map([
  [1, 'uint8'],
  [2, 'uint16'],
  [4, 'uint32'],
  [8, 'uint64'],
])

/** Dates and time spans are 64-bit counts of a unit, which is in brackets, perhaps with a factor. */
const DATE = /^[mM]8(?:\[(?:\d{0,10}(?:Y|M|W|D|h|m|s|ms|us|ns|ps|fs|as)|generic)\])?$/

const TYPE_STRING = /^([<>|=]?)(.*)$/s

/** @throws TileworkError ERR_DTYPE for an unknown type, ERR_UNSUPPORTED with the reason for one that cannot be read */
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

/** Raw items have no byte order: numpy ignores the mark `<` or `>`. */
function rawType(descr: string, itemBytes: number): ItemType {
  const dtype = DTYPE_BY_RAW_BYTES.get(itemBytes)
  if (dtype !== undefined) {
    return { kind: 'number', dtype, itemBytes, swapBytes: 0, descr: `|V${itemBytes}`, isOrderUnknown: false }
  }
  const message = `Its type is ${quote(descr)}, raw items of ${itemBytes} bytes; items of 1, 2, 4 and 8 bytes can be read.`
  throw new TileworkError('ERR_UNSUPPORTED', message)
}

function stringType(descr: string, letter: string, order: string, length: number): ItemType {
  const isText = letter === 'U'
  const itemBytes = length * (isText ? 4 : 1)
  // With items of 0 bytes, a tiny file could declare any number of strings.
  if (itemBytes === 0 || itemBytes > MAX_ITEM_BYTES) {
    const message = `Its type ${quote(descr)} has items of ${itemBytes} bytes; the format takes 1 to ${MAX_ITEM_BYTES}.`
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
    const reason = 'Python objects in a pickle; loading a pickle runs code, so tilework never does'
    return new TileworkError('ERR_UNSUPPORTED', `${what}, ${reason}.`)
  }
  if (/^(?:g|G|f12|f16|c24|c32)$/.test(code)) {
    const reason = 'a long double, whose bits differ from machine to machine'
    return new TileworkError('ERR_UNSUPPORTED', `${what}, ${reason}; save it as float64.`)
  }
  return new TileworkError('ERR_DTYPE', `${what}, which is unknown.`)
}

/** Small floats of the package ml_dtypes: numpy writes them as raw items, and ml_dtypes restores them with `.view()`. */
const RAW_CODE: ReadonlyMap<Dtype, string> = new Map(
  Object.values(DTYPES)
    .filter(({ mlDtypes, bits }) => mlDtypes !== undefined && bits >= 8)
    .map(({ name, bits }) => [name, bits === 8 ? '|V1' : `<V${bits / 8}`]),
)

/** The type string of a dense tensor; undefined where numpy has no such type. */
export function descrOf(tensor: Tensor): string | undefined {
  const { dtype } = tensor
  const kept = keptDescr(tensor)
  if (kept?.kind === 'number' && kept.dtype === dtype) return kept.descr
  const { bits, numpy: code } = DTYPES[dtype]
  if (code === undefined) return RAW_CODE.get(dtype)
  return `${bits === 8 ? '|' : '<'}${code}`
}

/** The numpy type of the file that a tensor came from, if its metadata still hold it. */
export function keptDescr(tensor: Tensor): ItemType | undefined {
  // A caller's own tensors may be plain objects without metadata.
  const descr = tensor.metadata?.get(DESCR_KEY)
  if (descr === undefined) return undefined
  try {
    return parseDescr(descr)
  } catch {
    // Callers can set metadata freely; a type that cannot be parsed counts as absent.
    return undefined
  }
}
