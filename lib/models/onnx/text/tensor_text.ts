/** Tensors in ONNX text: type, shape, name, and the values, or where they are. */
import type { Dtype } from '../../../dtype/dtypes.js'
import type { Message, MessageField } from '../../../formats/onnx/protobuf/message.js'
import { DTYPE_OF_CODE, LOCATION_EXTERNAL } from '../../../formats/onnx/schema.js'
import { tensorOfField } from '../../../formats/onnx/tensor/from_message.js'
import { elementName } from '../../../formats/onnx/text/element_names.js'
import { writeFloat } from '../../../formats/onnx/text/float_text.js'
import { joinedNumbers, writeText, writeWhole } from '../../../formats/onnx/text/write_numbers.js'
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

/** Writes the element at an offset of the view, as ASCII. */
type Write = (text: Buffer, to: number, view: DataView, at: number) => number

const unsigned8: Write = (text, to, view, at) => writeWhole(text, to, view.getUint8(at))
const unsigned16: Write = (text, to, view, at) => writeWhole(text, to, view.getUint16(at, true))

/** Types with values in ONNX text; 8- and 16-bit floats are printed as their codes. */
const PRINTED: Readonly<Partial<Record<Dtype, { readonly bytes: number; readonly write: Write }>>> = {
  int8: { bytes: 1, write: (text, to, view, at) => writeWhole(text, to, view.getInt8(at)) },
  int16: { bytes: 2, write: (text, to, view, at) => writeWhole(text, to, view.getInt16(at, true)) },
  int32: { bytes: 4, write: (text, to, view, at) => writeWhole(text, to, view.getInt32(at, true)) },
  int64: { bytes: 8, write: writeInt64 },
  uint8: { bytes: 1, write: unsigned8 },
  bool: { bytes: 1, write: unsigned8 },
  float8_e4m3fn: { bytes: 1, write: unsigned8 },
  float8_e4m3fnuz: { bytes: 1, write: unsigned8 },
  float8_e5m2: { bytes: 1, write: unsigned8 },
  float8_e5m2fnuz: { bytes: 1, write: unsigned8 },
  float8_e8m0fnu: { bytes: 1, write: unsigned8 },
  uint16: { bytes: 2, write: unsigned16 },
  float16: { bytes: 2, write: unsigned16 },
  bfloat16: { bytes: 2, write: unsigned16 },
  uint32: { bytes: 4, write: (text, to, view, at) => writeWhole(text, to, view.getUint32(at, true)) },
  uint64: {
    bytes: 8,
    write: (text, to, view, at) => writeText(text, to, String(view.getBigUint64(at, true))),
  },
  float32: {
    bytes: 4,
    write: (text, to, view, at) =>
      writeFloatOfFile(text, to, view.getFloat32(at, true), true, view.getInt8(at + 3)),
  },
  float64: {
    bytes: 8,
    write: (text, to, view, at) =>
      writeFloatOfFile(text, to, view.getFloat64(at, true), false, view.getInt8(at + 7)),
  },
}

/** Whether ONNX text has a form for values of a type. */
export function isPrinted(dtype: Dtype): boolean {
  return dtype === 'string' || dtype in PRINTED
}

/** Numbers whose upper half is in -2^21..2^21-1 are numbers of JavaScript; others are made as BigInt, which takes longer. */
const SAFE_UPPER_HALF = 2 ** 21

function writeInt64(text: Buffer, to: number, view: DataView, at: number): number {
  const upper = view.getInt32(at + 4, true)
  if (upper < -SAFE_UPPER_HALF || upper >= SAFE_UPPER_HALF)
    return writeText(text, to, String(view.getBigInt64(at, true)))
  return writeWhole(text, to, upper * 2 ** 32 + view.getUint32(at, true))
}

/** NaN keeps its sign, which a number of JavaScript does not tell: that of the last byte. */
function writeFloatOfFile(
  text: Buffer,
  to: number,
  value: number,
  isSingle: boolean,
  lastByte: number,
): number {
  return Number.isNaN(value) && lastByte < 0
    ? writeText(text, to, '-nan')
    : writeFloat(text, to, value, isSingle)
}

async function numbersText(tensor: DenseTensor): Promise<string> {
  const { bytes: width, write } = PRINTED[tensor.dtype]!
  const bytes = await tensor.bytes()
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength)
  const count = bytes.byteLength / width
  return ` {${joinedNumbers(count, ',', (text, to, index) => write(text, to, view, index * width))}}`
}
