/**
 * Peak memory of a call above an empty process, for files that once took many times their size: at most 8 times the file and
 * 64 MiB. Each call has a process of its own, whose heap has three quarters of that: without a limit garbage is collected late
 * on a busy machine, and 113 MiB become 186. Reads `dist`.
 */
import { execFileSync } from 'node:child_process'
import { statSync, writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { crc32 } from 'node:zlib'
import { expect, it } from 'vitest'
import { temporaryFolder } from '../cli/temporary_folder.js'
import { Encoder, ggufFile } from '../formats/gguf/gguf_bytes.js'
import { constLayer, irBytes } from '../formats/openvino/ir_bytes.js'
import { checkpoint, get, pickle, put, tensor, text } from '../formats/pytorch/checkpoint_bytes.js'

const CHILD = fileURLToPath(new URL('peak_child.mjs', import.meta.url))
const DIST = fileURLToPath(new URL('../../dist', import.meta.url))
const inFolder = temporaryFolder()

function npy(descr: string, shape: string, data: Uint8Array): Buffer {
  const header = Buffer.from(`{'descr': '${descr}', 'fortran_order': False, 'shape': ${shape}}\n`)
  const head = Buffer.from([0x93, ...Buffer.from('NUMPY'), 1, 0, header.length % 256, header.length >> 8])
  return Buffer.concat([head, header, data])
}

function word(value: number, width: number): Buffer {
  const bytes = Buffer.alloc(8)
  bytes.writeBigUInt64LE(BigInt(value))
  return bytes.subarray(0, width)
}

function manyMembers(count: number): Buffer {
  const data = npy('|u1', '()', new Uint8Array(1))
  const sizes = Buffer.concat([word(crc32(data), 4), word(data.length, 4), word(data.length, 4)])
  const locals: Buffer[] = []
  const entries: Buffer[] = []
  let at = 0
  for (let i = 0; i < count; i++) {
    const name = Buffer.from(`${i.toString(36)}.npy`)
    const fields = Buffer.concat([word(20, 2), Buffer.alloc(8), sizes, word(name.length, 4)])
    const local = Buffer.concat([word(0x04034b50, 4), fields, name, data])
    locals.push(local)
    entries.push(
      Buffer.concat([word(0x02014b50, 4), word(20, 2), fields, Buffer.alloc(10), word(at, 4), name]),
    )
    at += local.length
  }
  const directory = Buffer.concat(entries)
  const end = [
    word(0x06054b50, 4),
    Buffer.alloc(4),
    word(count, 2),
    word(count, 2),
    word(directory.length, 4),
    word(at, 4),
  ]
  return Buffer.concat([...locals, directory, ...end, Buffer.alloc(2)])
}

function manyRecords(count: number): Buffer {
  const bytes = Buffer.alloc(8 + 32 * count)
  bytes.writeBigUInt64LE(BigInt(count))
  for (let i = 0; i < count; i++) {
    const offset = 8 + 8 * count + 24 * i
    bytes.writeBigUInt64LE(BigInt(offset), 8 + 8 * i)
    bytes.writeBigUInt64LE(1n, offset)
  }
  return bytes
}

function manyEntries(count: number): Buffer {
  const entry = (_: unknown, at: number): string =>
    `"${at.toString(36)}":{"dtype":"U8","shape":[1],"data_offsets":[${at},${at + 1}]}`
  const json = Buffer.from(`{${Array.from({ length: count }, entry).join(',')}}`)
  return Buffer.concat([word(json.length, 8), json, Buffer.alloc(count)])
}

/** An ONNX model of `count` initializers with one number each. */
function manyInitializers(count: number): Buffer {
  const graph: Buffer[] = []
  for (let i = 0; i < count; i++) {
    const name = Buffer.from(`w${i}`)
    const scalar = Buffer.concat([
      Buffer.from([0x08, 1, 0x10, 1, 0x42, name.length]),
      name,
      Buffer.from([0x4a, 4, 0, 0, 128, 63]),
    ])
    graph.push(Buffer.from([0x2a, scalar.length]), scalar)
  }
  const body = Buffer.concat(graph)
  const length = Buffer.from([
    (body.length % 128) | 128,
    ((body.length >> 7) % 128) | 128,
    ((body.length >> 14) % 128) | 128,
    body.length >> 21,
  ])
  return Buffer.concat([Buffer.from([0x08, 8, 0x42, 2, 0x10, 17, 0x3a]), length, body])
}

/** A name of line breaks, each of which is six characters on a terminal. */
function longName(length: number): Buffer {
  const name = '\\n'.repeat(length)
  const json = Buffer.from(`{"${name}":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}}`)
  return Buffer.concat([word(json.length, 8), json, Buffer.alloc(1)])
}

const gguf = new Encoder()

/** GGUF keys of 18 bytes. */
function manyKeys(count: number): Buffer {
  const keys = Array.from({ length: count }, (_, at) => gguf.key(`k${at}`, 0, Uint8Array.of(1)))
  return Buffer.from(ggufFile({ keys }))
}

/** GGUF tensors without elements. */
function manyInfos(count: number): Buffer {
  const infos = Array.from({ length: count }, (_, at) => ({ name: `t${at}`, dims: [0], type: 0, offset: 0 }))
  return Buffer.from(ggufFile({ infos }))
}

/** One tensor of a checkpoint under many names. */
function manyNames(count: number): Buffer {
  const names = Array.from({ length: count }, (_, at) => Buffer.concat([text(`${at}`), get(1)]))
  const all = [Buffer.from('}(', 'latin1'), text('w'), tensor(), put(1), ...names, Buffer.from('u', 'latin1')]
  return Buffer.from(checkpoint({ pickle: pickle(Buffer.concat(all)) }))
}

/** Constants of an IR that share their bytes. */
function manyConstants(count: number): Buffer {
  const layer = (at: number) => constLayer(at, { name: `c${at}`, type: 'u8', shape: '1', offset: 0, size: 1 })
  const layers = Array.from({ length: count }, (_, at) => layer(at)).join('')
  return Buffer.from(irBytes({ layers }).xml)
}

it.each([
  ['strings.npy', 'convert', () => npy('|S1', '(2000000,)', new Uint8Array(2_000_000).fill(65))],
  ['strings.npy', 'open', () => npy('|S1', '(2000000,)', new Uint8Array(2_000_000).fill(65))],
  ['members.npz', 'open', () => manyMembers(65_000)],
  ['members.npz', 'check', () => manyMembers(65_000)],
  ['records.btf', 'open', () => manyRecords(400_000)],
  ['records.btf', 'check', () => manyRecords(400_000)],
  ['records.btf', 'convert', () => manyRecords(250_000)],
  ['records.btf', 'inspect', () => manyRecords(250_000)],
  ['records.btf', 'inspect --json', () => manyRecords(250_000)],
  ['name.safetensors', 'inspect', () => longName(8_000_000)],
  ['entries.safetensors', 'inspect', () => manyEntries(180_000)],
  ['entries.safetensors', 'convert to npz', () => manyEntries(180_000)],
  ['entries.safetensors', 'convert to float32', () => manyEntries(180_000)],
  ['initializers.onnx', 'convert', () => manyInitializers(400_000)],
  ['initializers.onnx', 'inspect', () => manyInitializers(400_000)],
  ['keys.gguf', 'inspect', () => manyKeys(65_000)],
  ['infos.gguf', 'convert to npz', () => manyInfos(60_000)],
  ['names.pt', 'inspect', () => manyNames(25_000)],
  ['constants.xml', 'inspect', () => manyConstants(60_000)],
] as const)('%s: %s', { timeout: 300_000 }, (name, call, bytes) => {
  const file = inFolder(`${call.replaceAll(' ', '')}-${name}`)
  writeFileSync(file, bytes())
  if (name.endsWith('.xml')) writeFileSync(file.replace(/xml$/, 'bin'), Uint8Array.of(0))
  const most = 8 * (statSync(file).size / 2 ** 20) + 64
  const heap = `--max-old-space-size=${Math.floor(0.75 * most)}`
  const grown = Number(execFileSync(process.execPath, [heap, CHILD, DIST, call, file], { encoding: 'utf8' }))
  expect(grown / 2 ** 20).toBeLessThan(most)
})
