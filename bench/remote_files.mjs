/** Writes the files of `bench -- remote`. */
import { closeSync, ftruncateSync, openSync, writeSync } from 'node:fs'
import { join } from 'node:path'
import { open, save, tensor } from '../dist/index.js'
import { initializerName, writeInitializers } from './onnx_models.mjs'

const MIB = 1024 ** 2
/** 150 matrices of 66 MB and 150 vectors of 32 KiB: 10 GB, of which the disk has the header and one number per tensor. */
const PAIRS = 150
const MATRIX = [8192, 4044]
const VECTOR = [8192]
/** Tensors of 1 MiB in the other files. */
const COUNT = 64

/**
 * @returns {Promise<{ format: string, file: string, tensors: Record<string, string> }[]>} the names of tensors to read, by what
 * the table calls them
 */
export async function writeFiles(folder) {
  writeSparse(join(folder, 'model.safetensors'))
  const tensors = Array.from({ length: COUNT }, (_, at) =>
    tensor(
      Float32Array.from({ length: MIB / 4 }, (_, i) => at + i),
      { name: `t${at}`, shape: [512, 512] },
    ),
  )
  await save(join(folder, 'one.npy'), tensor(new Float32Array(16 * MIB).fill(1), { shape: [4096, 4096] }))
  for (const format of ['npz', 'btf', 'tmfile']) await save(join(folder, `many.${format}`), tensors)
  writeInitializers(join(folder, 'small.onnx'), { bytes: 4 * MIB, count: 4 })
  const inner = join(folder, 'inner.onnx')
  writeInitializers(inner, { bytes: COUNT * MIB, count: COUNT })
  const file = await open(inner)
  await save(join(folder, 'outer.onnx'), file, { external: { location: 'outer.data' } })
  file.close()
  // BTF has no names.
  const middle = (format) => ({ '1 MiB tensor': format === 'btf' ? String(COUNT / 2) : `t${COUNT / 2}` })
  return [
    {
      format: 'safetensors',
      file: 'model.safetensors',
      tensors: { '32 KiB tensor': 'norm.75', '63 MiB tensor': 'weight.75' },
    },
    { format: 'npy', file: 'one.npy', tensors: { '64 MiB tensor': 'arr_0' } },
    ...['npz', 'btf', 'tmfile'].map((format) => ({
      format,
      file: `many.${format}`,
      tensors: middle(format),
    })),
    { format: 'onnx', file: 'small.onnx', tensors: { '1 MiB tensor': initializerName(2) } },
    {
      format: 'onnx, external',
      file: 'outer.onnx',
      tensors: { '1 MiB tensor': initializerName(COUNT / 2) },
    },
  ]
}

/** Values are zeros except for the first of each tensor, so the file has holes. */
function writeSparse(path) {
  const header = {}
  let offset = 0
  for (let at = 0; at < PAIRS; at++) {
    for (const [name, shape] of [
      [`weight.${at}`, MATRIX],
      [`norm.${at}`, VECTOR],
    ]) {
      const end = offset + 2 * shape.reduce((product, extent) => product * extent, 1)
      header[name] = { dtype: 'F16', shape, data_offsets: [offset, end] }
      offset = end
    }
  }
  let text = JSON.stringify(header)
  text = text.padEnd(Math.ceil(text.length / 8) * 8)
  const start = 8 + text.length
  const length = Buffer.alloc(8)
  length.writeBigUInt64LE(BigInt(text.length))
  const descriptor = openSync(path, 'w')
  writeSync(descriptor, Buffer.concat([length, Buffer.from(text)]))
  ftruncateSync(descriptor, start + offset)
  for (const [at, { data_offsets }] of Object.values(header).entries()) {
    writeSync(descriptor, Buffer.of(at & 255, 60), 0, 2, start + data_offsets[0])
  }
  closeSync(descriptor)
}
