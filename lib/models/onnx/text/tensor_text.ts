/** Tensors in ONNX text: type, shape, name, and the values, or where they are. */
import type { Dtype } from '../../../dtype/dtypes.js'
import type { Message, MessageField } from '../../../formats/onnx/protobuf/message.js'
import { DTYPE_OF_CODE, LOCATION_EXTERNAL } from '../../../formats/onnx/schema.js'
import { tensorOfField } from '../../../formats/onnx/tensor/from_message.js'
import { elementName } from '../../../formats/onnx/text/element_names.js'
import { floatText } from '../../../formats/onnx/text/float_text.js'
import type { DenseTensor, Tensor } from '../../../tensor/tensor.js'
import { identifier, list, quoted } from './words.js'

/** Values that are not printed: of types that ONNX text has no form for, and of tensors longer than the caller wants. */
const OMITTED = '...'

/**
 * @param separator - what follows the name: ` = ` in a list of initializers
 * @param maxElements - longer tensors are printed without values
 */
export async function tensorText(
  field: MessageField,
  separator: string,
  maxElements: number,
): Promise<string> {
  const { code, dims, name } = headOf(field)
  const shape = dims.length > 0 ? list('[', ',', ']', dims.map(String)) : ''
  const head = `${elementName(code)}${shape}${name === '' ? '' : ` ${identifier(name)}`}${separator}`
  return head + (await valuesText(field, DTYPE_OF_CODE.get(code), dims, maxElements))
}

interface TensorHead {
  readonly code: number
  readonly dims: readonly (number | bigint)[]
  readonly name: string
}

function headOf(field: MessageField): TensorHead {
  if (field.kind === 'tensor') {
    const { dtype, shape } = field.tensor
    return { code: codeOf(dtype), dims: shape, name: field.name }
  }
  return { code: Number(field.int('data_type') ?? 0), dims: field.ints('dims'), name: field.text('name') }
}

function codeOf(dtype: Dtype): number {
  for (const [code, each] of DTYPE_OF_CODE) if (each === dtype) return code
  return 0
}

async function valuesText(
  field: MessageField,
  dtype: Dtype | undefined,
  dims: readonly (number | bigint)[],
  maxElements: number,
): Promise<string> {
  if (field.kind === 'message' && field.int('data_location') === LOCATION_EXTERNAL) return locationText(field)
  const elements = dims.reduce<number>((product, extent) => product * Number(extent), 1)
  if (dtype === undefined || elements > maxElements) return OMITTED
  if (dtype === 'string' && field.kind === 'message' && field.has('raw_data')) return OMITTED
  if (!isPrinted(dtype)) return OMITTED
  const tensor = tensorOfField(field)
  if (!tensor.hasData) return dtype === 'string' ? '}' : ' {}'
  return tensor.kind === 'string' ? stringsText(tensor) : numbersText(tensor as DenseTensor)
}

function locationText(field: Message): string {
  const entries = field.messages('external_data')
  return list(
    '[',
    ', ',
    ']',
    entries.map((entry) => `${quoted(entry.text('key'))}: ${quoted(entry.text('value'))}`),
  )
}

async function stringsText(tensor: Extract<Tensor, { kind: 'string' }>): Promise<string> {
  const texts = await tensor.rawStrings()
  // The printer of onnx opens the list with the first string.
  if (texts.length === 0) return '}'
  return list(
    '{',
    ', ',
    '}',
    texts.map((bytes) => quoted(decoder.decode(bytes))),
  )
}

const decoder = new TextDecoder('utf-8', { ignoreBOM: true })

type Reader = (view: DataView, offset: number) => string

interface PrintedType {
  readonly bytes: number
  readonly read: Reader
}

const unsigned8: PrintedType = { bytes: 1, read: (view, at) => String(view.getUint8(at)) }
const unsigned16: PrintedType = { bytes: 2, read: (view, at) => String(view.getUint16(at, true)) }

/** Types with values in ONNX text; 8- and 16-bit floats are printed as their codes. */
const PRINTED: Readonly<Partial<Record<Dtype, PrintedType>>> = {
  int8: { bytes: 1, read: (view, at) => String(view.getInt8(at)) },
  int16: { bytes: 2, read: (view, at) => String(view.getInt16(at, true)) },
  int32: { bytes: 4, read: (view, at) => String(view.getInt32(at, true)) },
  int64: { bytes: 8, read: (view, at) => String(view.getBigInt64(at, true)) },
  uint8: unsigned8,
  bool: unsigned8,
  float8_e4m3fn: unsigned8,
  float8_e4m3fnuz: unsigned8,
  float8_e5m2: unsigned8,
  float8_e5m2fnuz: unsigned8,
  float8_e8m0fnu: unsigned8,
  uint16: unsigned16,
  float16: unsigned16,
  bfloat16: unsigned16,
  uint32: { bytes: 4, read: (view, at) => String(view.getUint32(at, true)) },
  uint64: { bytes: 8, read: (view, at) => String(view.getBigUint64(at, true)) },
  float32: { bytes: 4, read: (view, at) => signed(view, at + 3, view.getFloat32(at, true), true) },
  float64: { bytes: 8, read: (view, at) => signed(view, at + 7, view.getFloat64(at, true), false) },
}

/** Whether ONNX text has a form for values of a type. */
export function isPrinted(dtype: Dtype): boolean {
  return dtype === 'string' || dtype in PRINTED
}

/** NaN keeps its sign, which a number of JavaScript does not tell. */
function signed(view: DataView, signByte: number, value: number, isSingle: boolean): string {
  const text = floatText(value, isSingle)
  return text === 'nan' && view.getUint8(signByte) >= 0x80 ? '-nan' : text
}

/** Numbers that are joined at a time: a million texts that live until the end would all be moved by the garbage collector. */
const JOINED_NUMBERS = 512

async function numbersText(tensor: DenseTensor): Promise<string> {
  const { bytes: width, read } = PRINTED[tensor.dtype]!
  const bytes = await tensor.bytes()
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength)
  const parts: string[] = []
  for (let from = 0; from < bytes.byteLength; from += JOINED_NUMBERS * width) {
    const to = Math.min(bytes.byteLength, from + JOINED_NUMBERS * width)
    const texts: string[] = []
    for (let at = from; at < to; at += width) texts.push(read(view, at))
    parts.push(texts.join(','))
  }
  return list(' {', ',', '}', parts)
}
