/**
 * Writes BTF files independently of tilework, as inputs of its tests: otherwise an error that reader and writer share would
 * not be found. Dense tensors only; `lib/formats/btf/schema.ts` documents the format.
 */
import { closeSync, openSync, writeFileSync, writeSync } from 'node:fs'

const CODES = {
  int8: 0,
  int16: 1,
  int32: 2,
  int64: 3,
  float32: 4,
  float64: 5,
  uint8: 6,
  uint16: 7,
  uint32: 8,
  uint64: 9,
}

/** @typedef {{ dtype: keyof typeof CODES, shape: readonly number[], bytes: Uint8Array }} Dense */

/** Writes all of `tensors`. */
export function writeBtf(path, tensors) {
  const descriptor = openSync(path, 'w')
  try {
    const starts = []
    let end = 8 + 8 * tensors.length
    for (const { shape, bytes } of tensors) {
      starts.push(BigInt(end))
      end += recordBytes(shape, bytes.byteLength)
    }
    writeSync(descriptor, new BigUint64Array([BigInt(tensors.length), ...starts]))
    for (const { dtype, shape, bytes } of tensors) {
      writeSync(descriptor, recordHead(dtype, shape))
      writeSync(descriptor, bytes)
      writeSync(descriptor, new Uint8Array(padding(bytes.byteLength)))
    }
  } finally {
    closeSync(descriptor)
  }
}

/** What stands before the elements in a file of one tensor. */
export function headOfOne(dtype, shape) {
  const head = new BigUint64Array([1n, 16n])
  return Buffer.concat([new Uint8Array(head.buffer), recordHead(dtype, shape)])
}

/** Length of a file of one tensor with `elementBytes` bytes of elements. */
export function lengthOfOne(shape, elementBytes) {
  return 16 + recordBytes(shape, elementBytes)
}

/** Writes `count` tensors of one element each: a file that is nearly all headers. */
export function writeManyScalars(path, count) {
  const recordWords = 3
  const words = new BigUint64Array(1 + count + count * recordWords)
  words[0] = BigInt(count)
  for (let i = 0; i < count; i++) {
    const record = 1 + count + i * recordWords
    words[1 + i] = BigInt(record * 8)
    words[record] = 0n
    words[record + 1] = BigInt(CODES.int64)
    words[record + 2] = BigInt(i + 1)
  }
  writeFileSync(path, words)
}

function recordHead(dtype, shape) {
  const words = new BigUint64Array([BigInt(shape.length), BigInt(CODES[dtype]), ...shape.map(BigInt)])
  return new Uint8Array(words.buffer)
}

function recordBytes(shape, byteLength) {
  return 16 + 8 * shape.length + byteLength + padding(byteLength)
}

function padding(byteLength) {
  return (8 - (byteLength % 8)) % 8
}
