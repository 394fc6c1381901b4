/** The attributes of a node that a reader of a graph looks for, as a short text for its box: `3×3, stride 2, pad 1`. */
import type { NodeDescription } from '../../formats/model_description.js'
import { DTYPE_OF_CODE } from '../../formats/onnx/schema.js'

interface KeyAttribute {
  /** Empty for a size that says itself what it is. */
  readonly word: string
  /** The names in ONNX and OpenVINO, and those of a tmfile, which has one for each side. */
  readonly names: readonly string[]
  /** The value that is not worth a word. */
  readonly usual?: string
  /** Only operators whose name this matches. */
  readonly of?: RegExp
}

const KEY_ATTRIBUTES: readonly KeyAttribute[] = [
  // The weights of a convolution, which the box shows, have its size.
  { word: '', names: ['kernel_shape', 'kernel', 'kernel_h', 'kernel_w'], of: /pool/i },
  { word: 'stride', names: ['strides', 'stride_h', 'stride_w'], usual: '1' },
  { word: 'dilation', names: ['dilations', 'dilation_h', 'dilation_w'], usual: '1' },
  {
    word: 'pad',
    names: ['pads', 'pads_begin', 'pads_end', 'pad_h0', 'pad_w0', 'pad_h1', 'pad_w1'],
    usual: '0',
  },
  { word: 'group', names: ['group'], usual: '1' },
  { word: 'axis', names: ['axis'] },
  { word: 'axes', names: ['axes'] },
  { word: 'to', names: ['perm', 'destination_type'] },
  { word: 'K', names: ['K'] },
  { word: 'N', names: ['N'] },
  { word: 'bits', names: ['bits'] },
  { word: 'block', names: ['block_size'] },
  { word: 'heads', names: ['num_heads'] },
  { word: 'hidden', names: ['hidden_size'] },
  { word: 'mode', names: ['mode'], of: /resize|upsample|interp/i },
  { word: 'alpha', names: ['alpha'], of: /relu|elu/i },
]

const MOST_ATTRIBUTES = 4
/** Characters of a value; a longer one belongs beside the drawing. */
const LONGEST_VALUE = 24

/** Empty where no attribute is worth a word. */
export function keyAttributes({ operator, attributes }: NodeDescription): string {
  const found: string[] = []
  const target = DTYPE_OF_CODE.get(Number(attributes.get('to')))
  if (operator === 'Cast' && target) found.push(`to ${target}`)
  for (const { word, names, usual, of } of KEY_ATTRIBUTES) {
    if (attributes.size === 0 || found.length === MOST_ATTRIBUTES) break
    if (of && !of.test(operator)) continue
    const text = valueText(
      names.map((name) => attributes.get(name)),
      word === '',
    )
    if (text === '' || text === usual || text.length > LONGEST_VALUE) continue
    found.push(word === '' ? text : `${word} ${text}`)
  }
  return found.join(', ')
}

/** `[3, 3]` is `3×3`; a number that stands everywhere stands once, but a size has all of its sides. */
function valueText(values: readonly unknown[], isSize: boolean): string {
  const texts = values.filter((value): value is string => typeof value === 'string')
  const numbers = texts.join(' ').match(/-?\d+(?:\.\d+)?/g)
  if (!numbers || texts.some((text) => /[^\s\d.,[\]-]/.test(text)))
    return (texts[0] ?? '').replaceAll('"', '')
  return !isSize && new Set(numbers).size === 1 ? numbers[0]! : numbers.join('×')
}
