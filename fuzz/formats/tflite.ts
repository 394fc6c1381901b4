/** TFLite by its grammar: FlatBuffers of a model with buffers, tensors of every type, quantization, sparsity, graphs, signatures. */
import {
  csrLevel,
  data,
  denseLevel,
  type Fields,
  i32,
  i32s,
  table,
  tables,
  text,
  tfliteBytes,
  u8,
  u64,
} from '../../test/formats/tflite/tflite_bytes.js'
import { joined, le, type Random } from '../random.js'

/** Bits of an element by the number of its type; 0 for texts, resources and variants, which have no size. */
const BITS = [32, 16, 32, 8, 64, 0, 8, 16, 64, 8, 64, 128, 64, 0, 0, 32, 16, 4, 16, 2, 4]

export function tflite(random: Random): Uint8Array {
  const buffers: Fields[] = [{}]
  const graphs = random.times(2, () => graph(random, buffers))
  const model: Fields = {
    0: i32(random.once(20) ? Number(random.number() % 2n ** 31n) : 3),
    ...(random.once(20) ? {} : { 2: tables(...graphs) }),
    ...(random.once(3) ? { 3: text(random.name()) } : {}),
    4: tables(...buffers),
    ...(random.once(3) ? { 6: tables(...random.times(3, () => metadata(random))) } : {}),
    ...(random.once(3) ? { 7: tables(...random.times(2, () => signature(random))) } : {}),
  }
  const bytes = tfliteBytes(model, random.once(30) ? 'TFL2' : 'TFL3')
  // Buffers of large files lie behind the tables.
  return random.once(4) ? joined(bytes, random.bytes(64)) : bytes
}

function graph(random: Random, buffers: Fields[]): Fields {
  const list = random.times(5, () => tensor(random, buffers))
  const index = () => (random.once(15) ? -Number(random.number() % 2n ** 31n) : random.below(6))
  return {
    0: tables(...list),
    1: i32s(...random.times(2, index)),
    2: i32s(...random.times(2, index)),
    ...(random.once(2) ? { 4: text(random.name()) } : {}),
  }
}

function tensor(random: Random, buffers: Fields[]): Fields {
  const type = random.once(30) ? random.below(60) : random.below(BITS.length)
  const shape = random.times(3, () => (random.once(20) ? dim(random) : 1 + random.below(4)))
  const elements = Math.min(4096, Math.abs(shape.reduce((product, size) => product * size, 1)))
  const bytes =
    BITS[type] === 0
      ? strings(random, elements)
      : new Uint8Array(Math.ceil((elements * (BITS[type] ?? 8)) / 8))
  const stored = random.once(12) ? bytes.subarray(random.below(bytes.length + 1)) : bytes
  buffers.push(
    random.once(8)
      ? { 1: u64(random.number(400)), 2: u64(random.once(3) ? random.number(64) : BigInt(bytes.length)) }
      : { 0: data(stored.map(() => (BITS[type] === 0 ? 0 : random.below(256)))) },
  )
  if (BITS[type] === 0) buffers[buffers.length - 1] = { 0: data(stored) }
  return {
    0: i32s(...shape),
    1: u8(type),
    2: i32(random.once(15) ? Number(random.number(9) % 2n ** 31n) : buffers.length - 1),
    3: text(random.name()),
    ...(random.once(3) ? { 4: table(quantization(random)) } : {}),
    ...(random.once(5) ? { 6: table(sparsity(random, shape)) } : {}),
    ...(random.once(6) ? { 7: i32s(...shape.map(() => random.pick([-1, 1, 4]))) } : {}),
  }
}

function dim(random: Random): number {
  return Number(BigInt.asIntN(32, random.number()))
}

function strings(random: Random, count: number): Uint8Array {
  const texts = Array.from({ length: Math.min(count, 20) }, () => Buffer.from(random.name()))
  let at = 4 * (texts.length + 2)
  const ends = texts.map((each) => {
    at += each.length
    return at
  })
  const head = [texts.length, 4 * (texts.length + 2), ...ends].map((value) =>
    le(random.once(40) ? random.number(99) : value, 4),
  )
  return joined(...head, ...texts)
}

function quantization(random: Random): Fields {
  const count = random.below(4)
  return {
    2: data(new Uint8Array(4 * count).fill(63), 4),
    3: data(new Uint8Array(8 * (random.once(8) ? random.below(4) : count)), 8),
    6: i32(random.once(8) ? dim(random) : random.below(3)),
  }
}

function sparsity(random: Random, shape: readonly number[]): Fields {
  const rows = Math.abs(shape[0] ?? 1) % 8
  const segments = Array.from({ length: rows + 1 }, (_, at) => (random.once(20) ? dim(random) : at))
  const indices = Array.from({ length: rows }, () => (random.once(15) ? dim(random) : random.below(3)))
  const levels = shape.map((size, axis) =>
    axis === 1 ? csrLevel(segments, indices) : denseLevel(random.once(15) ? dim(random) : size),
  )
  return {
    0: i32s(...(random.once(10) ? shape.map(() => random.below(4)) : shape.keys())),
    ...(random.once(6) ? { 1: i32s(...random.times(2, () => random.below(4))) } : {}),
    2: tables(...(random.once(10) ? levels.slice(1) : levels)),
  }
}

function metadata(random: Random): Fields {
  return { 0: text(random.name()), 1: i32(random.below(5)) }
}

function signature(random: Random): Fields {
  const maps = () => tables(...random.times(2, () => ({ 0: text(random.name()), 1: i32(random.below(6)) })))
  return {
    0: maps(),
    1: maps(),
    2: text(random.name()),
    ...(random.once(3) ? { 4: i32(random.below(4)) } : {}),
  }
}
