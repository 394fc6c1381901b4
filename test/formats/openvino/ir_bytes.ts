/** Builds the two files of an IR, independently of the reader under test. */
import { type OpenFile, type OpenOptions, open } from '../../../lib/index.js'

/** A constant: its bytes as they are stored, and what the XML file says of them. */
export interface ConstantInit {
  readonly name: string
  readonly type: string
  readonly shape: string
  readonly bytes: Uint8Array
  /** Where the bytes are; by default after those of the constants before. */
  readonly offset?: number | string
  readonly size?: number | string
}

export interface IrInit {
  readonly version?: string
  readonly constants?: readonly ConstantInit[]
  /** Layers after the constants. */
  readonly layers?: string
  readonly edges?: string
  /** After the edges. */
  readonly tail?: string
}

export interface IrBytes {
  readonly xml: Uint8Array
  readonly bin: Uint8Array
}

const escaped = (text: string) =>
  text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('"', '&quot;')

export function constLayer(
  id: number,
  { name, type, shape, offset, size }: Omit<ConstantInit, 'bytes'>,
): string {
  const data = `element_type="${type}" shape="${shape}" offset="${offset}" size="${size}"`
  return `<layer id="${id}" name="${escaped(name)}" type="Const" version="opset1">
\t<data ${data} /><output><port id="0" precision="FP32"><dim>1</dim></port></output></layer>\n`
}

/** The files of constants, numbered from 0, and of further layers. */
export function irBytes({
  version = '11',
  constants = [],
  layers = '',
  edges = '',
  tail = '',
}: IrInit): IrBytes {
  const parts: Uint8Array[] = []
  let end = 0
  const texts = constants.map((constant, index) => {
    const { bytes } = constant
    const text = constLayer(index, { offset: end, size: Math.max(1, bytes.length), ...constant })
    parts.push(bytes.length === 0 ? Uint8Array.of(0) : bytes)
    end += parts.at(-1)!.length
    return text
  })
  const xml = `<?xml version="1.0"?>\n<net name="m" version="${version}"><layers>\n${texts.join('')}${layers}</layers>\n<edges>${edges}</edges>${tail}</net>\n`
  return { xml: Buffer.from(xml), bin: Buffer.concat(parts) }
}

/** Opens the files from memory, as `model.xml` with `model.bin`. */
export function openIr({ xml, bin }: IrBytes, options: OpenOptions = {}): Promise<OpenFile> {
  return open(xml, { resolve: (name) => (name === 'model.bin' ? bin : undefined), ...options })
}

export const floats = (...values: number[]) => new Uint8Array(Float32Array.from(values).buffer)

/** A model with a constant of each kind: floats, packed types, texts, an empty one, equal names, one in a body. */
export function sampleIr(): IrBytes {
  const constants: ConstantInit[] = [
    { name: 'w', type: 'f32', shape: '2, 3', bytes: floats(1, 2, 3, 4, 5, 6) },
    { name: 'bits', type: 'u1', shape: '9', bytes: Uint8Array.of(0x81, 0x80) },
    { name: 'threes', type: 'u3', shape: '8', bytes: Uint8Array.of(0xac, 0x53, 0x0f) },
    { name: 'sixes', type: 'u6', shape: '2, 2', bytes: Uint8Array.of(0x21, 0x43, 0xe4) },
    { name: 'normal', type: 'nf4', shape: '3', bytes: Uint8Array.of(0xf0, 0x07) },
    { name: 'half', type: 'i4', shape: '3', bytes: Uint8Array.of(0x21, 0x0f) },
    { name: 'texts', type: 'string', shape: '3', bytes: textBytes('', 'ab', 'ü☃') },
    { name: 'empty', type: 'f32', shape: '0, 4', bytes: new Uint8Array(0) },
    { name: 'w', type: 'f32', shape: '', bytes: floats(7) },
    { name: 'a>b "&<☃', type: 'u8', shape: '1', bytes: Uint8Array.of(9) },
  ]
  const body = `<body><layers>${constLayer(0, { name: 'w', type: 'f32', shape: '2', offset: 4, size: 8 })}</layers><edges/></body>`
  const layers = `<layer id="20" name="x" type="Parameter"><data shape="?,3,8..64" element_type="f32"/><output><port id="0" precision="FP32" names="x,a\\,b"><dim>-1</dim></port></output></layer>
<layer id="21" name="loop" type="Loop"><input><port id="0" precision="FP32"/></input><output><port id="1" precision="FP32" names="y"/></output>${body}</layer>
<layer id="22" name="out" type="Result"><input><port id="0" precision="FP32"><dim>-1</dim><dim>4</dim></port></input></layer>`
  const edges = `<edge from-layer="20" from-port="0" to-layer="21" to-port="0"/><edge from-layer="21" from-port="1" to-layer="22" to-port="0"/>`
  const tail =
    '<rt_info><info name="OpenVINO Runtime" value="1"/><conversion><input value="[1]"/></conversion></rt_info>'
  return irBytes({ constants, layers, edges, tail })
}

/** Texts as an IR stores them. */
export function textBytes(...texts: string[]): Uint8Array {
  const parts = texts.map((text) => Buffer.from(text))
  const ends = parts.map((_, index) => parts.slice(0, index + 1).reduce((sum, each) => sum + each.length, 0))
  return Buffer.concat([Buffer.from(Int32Array.from([texts.length, 0, ...ends]).buffer), ...parts])
}
