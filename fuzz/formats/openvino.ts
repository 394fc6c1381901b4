/**
 * OpenVINO IR by its grammar: layers with constants, ports and bodies, edges, rt_info, in the spellings of XML. A case is both files, the
 * length of the first in four bytes before them.
 */
import { joined, le, type Random } from '../random.js'

/** Bits of an element; 0 for texts. */
const BITS: Readonly<Record<string, number>> = {
  ...{
    boolean: 8,
    u1: 1,
    u2: 2,
    u3: 3,
    u4: 4,
    u6: 6,
    u8: 8,
    u16: 16,
    u32: 32,
    u64: 64,
    i4: 4,
    i8: 8,
    i16: 16,
  },
  ...{
    i32: 32,
    i64: 64,
    f16: 16,
    bf16: 16,
    f32: 32,
    f64: 64,
    nf4: 4,
    f8e4m3: 8,
    f8e5m2: 8,
    f4e2m1: 4,
    string: 0,
  },
}

export function openvino(random: Random): Uint8Array {
  const weights: Uint8Array[] = []
  const layers = random.times(5, (id) => layer(random, id, weights, 0))
  const edges = random.times(4, () => `<edge ${attributes(random, edge(random))}/>`)
  const tail = random.once(3) ? `<rt_info>${element(random, 0)}</rt_info>` : ''
  const root = `<net ${attributes(random, { name: random.name(), version: random.once(20) ? '10' : '11' })}>${blank(random)}<layers>${layers.join(blank(random))}</layers><edges>${edges.join('')}</edges>${tail}</net>`
  const xml = Buffer.from(
    `${random.once(4) ? '' : '<?xml version="1.0"?>'}${random.once(25) ? '<!DOCTYPE net>' : ''}${root}`,
  )
  const bin = joined(...weights)
  return joined(le(xml.length, 4), xml, random.once(12) ? bin.subarray(random.below(bin.length + 1)) : bin)
}

/** The two files of a case. */
export function filesOf(bytes: Uint8Array): { readonly xml: Uint8Array; readonly bin: Uint8Array } {
  const length = bytes.length < 4 ? 0 : new DataView(bytes.buffer, bytes.byteOffset).getUint32(0, true)
  return { xml: bytes.subarray(4, 4 + length), bin: bytes.subarray(4 + length) }
}

function edge(random: Random): Record<string, string> {
  const number = () => String(random.once(12) ? random.number() : random.below(5))
  return { 'from-layer': number(), 'from-port': number(), 'to-layer': number(), 'to-port': number() }
}

function layer(random: Random, id: number, weights: Uint8Array[], depth: number): string {
  const type = random.pick(['Const', 'Const', 'Const', 'Parameter', 'Result', 'Add', 'If'])
  const head = attributes(random, {
    id: String(random.once(12) ? random.number() : id),
    name: random.name(),
    type,
    version: 'opset1',
  })
  const content = type === 'Const' ? constant(random, weights) : type === 'Parameter' ? parameter(random) : ''
  const body =
    type === 'If' && depth < 3
      ? `<then_body><layers>${random.times(2, (inner) => layer(random, inner, weights, depth + 1)).join('')}</layers><edges/></then_body>`
      : ''
  return `<layer ${head}>${content}${ports(random)}${body}</layer>`
}

function constant(random: Random, weights: Uint8Array[]): string {
  const type = random.pick(Object.keys(BITS))
  const shape = random.times(3, () => (random.once(20) ? random.number() : BigInt(random.below(4))))
  const elements = Number(
    BigInt.asUintN(
      8,
      shape.reduce((product, dim) => product * dim, 1n),
    ),
  )
  const bytes =
    type === 'string'
      ? texts(random, elements)
      : new Uint8Array(Math.ceil((elements * BITS[type]!) / 8)).map(() => random.below(256))
  const start = weights.reduce((sum, { length }) => sum + length, 0)
  const stored = bytes.length === 0 ? Uint8Array.of(0) : bytes
  weights.push(stored)
  const data = {
    element_type: random.once(25) ? random.name() : type,
    shape: shape.join(random.pick([', ', ',', ' , '])),
    offset: String(random.once(12) ? random.number(start + 9) : start),
    size: String(random.once(12) ? random.number(99) : stored.length),
  }
  return `<data ${attributes(random, data)}/>`
}

function texts(random: Random, count: number): Uint8Array {
  const parts = Array.from({ length: Math.min(count, 20) }, () => Buffer.from(random.name()))
  let end = 0
  const ends = parts.map((part) => {
    end += part.length
    return end
  })
  return joined(
    ...[parts.length, 0, ...ends].map((value) => le(random.once(40) ? random.number(99) : value, 4)),
    ...parts,
  )
}

function parameter(random: Random): string {
  const shape = random.times(3, () =>
    random.pick(['?', '1', '3', '8..64', '..4', '-1', '...', String(random.number())]),
  )
  return `<data ${attributes(random, { shape: shape.join(','), element_type: random.pick(Object.keys(BITS)) })}/>`
}

function ports(random: Random): string {
  const port = (id: number) =>
    `<port ${attributes(random, { id: String(id), precision: random.pick(['FP32', 'I64', 'X']), names: random.pick(['a,b', 'x\\,y', '']) })}>${random.times(3, () => `<dim>${random.once(12) ? random.number() : random.below(5)}</dim>`).join('')}</port>`
  return `<input>${random.times(2, port).join('')}</input><output>${random.times(2, port).join('')}</output>`
}

/** Elements inside rt_info have any names. */
function element(random: Random, depth: number): string {
  const name = random.pick(['info', 'conversion', 'a_b', '_x'])
  const inner = depth > 20 ? '' : random.times(2, () => element(random, depth + 1)).join('')
  return `<${name} ${attributes(random, { value: random.name() })}>${random.once(6) ? '<!-- c --><![CDATA[x<]]>' : ''}${inner}</${name}>`
}

function attributes(random: Random, fields: Readonly<Record<string, string>>): string {
  const quote = random.pick(['"', '"', "'"])
  const list = Object.entries(fields).map(
    ([name, value]) => `${name}=${quote}${escaped(random, value)}${quote}`,
  )
  if (random.once(300)) list.splice(random.below(list.length), 1)
  if (random.once(400) && list.length > 0) list.push(random.pick(list))
  return list.join(random.pick([' ', '\n', '\t']))
}

function escaped(random: Random, value: string): string {
  if (random.once(400)) return value
  const plain = value
    .replaceAll('\0', '')
    .replaceAll('&', '&amp;')
    .replaceAll('<', '&lt;')
    .replaceAll('"', '&quot;')
    .replaceAll("'", '&apos;')
  if (!random.once(400)) return plain
  return plain + random.pick(['&#x41;', '&#65;', '&#0;', '&lol;', '&#x110000;', '&amp'])
}

function blank(random: Random): string {
  return random.once(3) ? random.pick(['\n', '  ', '\r\n\t', '<!-- comment -->']) : ''
}
