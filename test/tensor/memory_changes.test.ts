/** Buffers that are transferred or shrunk while a tensor or an open file reads from them. */
import { describe, expect, it } from 'vitest'
import { MemorySource } from '../../lib/bytes/memory.js'
import { btfEntry } from '../../lib/formats/btf/entry.js'
import { btf } from '../../lib/formats/btf/index.js'
import { FileHead } from '../../lib/formats/file_head.js'
import { open } from '../../lib/pipeline/open.js'
import { asTensor } from '../../lib/tensor/adapters.js'
import { tensor } from '../../lib/tensor/from_values.js'
import type { DenseTensor } from '../../lib/tensor/tensor.js'
import { btfFile, denseRecord, readOptions } from '../formats/btf/btf_bytes.js'

const code = (name: string) => expect.objectContaining({ name: 'TileworkError', code: name })
const file = (): Uint8Array => btfFile(denseRecord({ dims: [4], data: Int32Array.of(1, 2, 3, 4) }))

/** Node 20 has resizable buffers; its type declarations lack them. */
interface Resizable extends ArrayBuffer {
  resize(length: number): void
}
const resizable = (length: number): Resizable =>
  new (ArrayBuffer as unknown as new (length: number, options: object) => Resizable)(length, {
    maxByteLength: 2 * length,
  })

function transfer(bytes: ArrayBufferView): void {
  structuredClone(bytes, { transfer: [bytes.buffer as ArrayBuffer] })
}

const CHANGES: [string, () => { bytes: Uint8Array; change: () => void }][] = [
  [
    'transferred',
    () => {
      const bytes = file()
      return { bytes, change: () => transfer(bytes) }
    },
  ],
  [
    'made smaller',
    () => {
      const buffer = resizable(file().byteLength)
      new Uint8Array(buffer).set(file())
      return { bytes: new Uint8Array(buffer), change: () => buffer.resize(8) }
    },
  ],
]

describe.each(CHANGES)('a buffer that is %s', (_, make) => {
  it('behind an open file is ERR_FILE_CHANGED', async () => {
    const { bytes, change } = make()
    const opened = await open(bytes)
    const dense = opened.tensors.at(0) as DenseTensor
    expect(dense.at(3)).toBe(4)
    change()
    await expect(dense.bytes()).rejects.toThrow(code('ERR_FILE_CHANGED'))
    await expect(dense.toTypedArray()).rejects.toThrow(code('ERR_FILE_CHANGED'))
    expect(() => dense.bytesSync()).toThrow(code('ERR_FILE_CHANGED'))
    expect(() => dense.at(0)).toThrow(code('ERR_FILE_CHANGED'))
  })

  it('during a read is ERR_FILE_CHANGED at whatever step it is detected', async () => {
    for (let microtasks = 0; microtasks < 12; microtasks++) {
      const { bytes, change } = make()
      const source = new MemorySource(bytes)
      const reading = btf.read(source, readOptions('strict'))
      const outcomes = Promise.allSettled([
        reading.then(({ tensors }) => (tensors.at(0) as DenseTensor).toTypedArray()),
        btf.check(source, readOptions('strict')),
        FileHead.read(source).then((head) => btfEntry.detect(head)),
      ])
      for (let i = 0; i < microtasks; i++) await undefined
      change()
      const reasons = (await outcomes).flatMap((each) => (each.status === 'rejected' ? [each.reason] : []))
      for (const reason of reasons) expect(reason).toEqual(code('ERR_FILE_CHANGED'))
      if (microtasks === 0) expect(reasons.length).toBe(3)
    }
  })
})

it('a transferred array is rejected as input', async () => {
  const bytes = file()
  transfer(bytes)
  expect(() => tensor(bytes)).toThrow(code('ERR_ARGUMENT'))
  expect(() => asTensor(bytes)).toThrow(code('ERR_ARGUMENT'))
  await expect(open(bytes)).rejects.toThrow(code('ERR_ARGUMENT'))
})

it('an adapted array that is transferred later is ERR_FILE_CHANGED', async () => {
  const values = Float32Array.of(1, 2)
  const dense = asTensor(values)
  transfer(values)
  await expect(dense.toTypedArray()).rejects.toThrow(code('ERR_FILE_CHANGED'))
})

it('a fixed-length array beyond the end of its shrunk buffer is rejected as input', () => {
  const buffer = resizable(16)
  const values = new Float32Array(buffer, 0, 4)
  buffer.resize(8)
  expect(() => tensor(values)).toThrow(code('ERR_ARGUMENT'))
  expect(() => asTensor(values)).toThrow(code('ERR_ARGUMENT'))
  expect(() => asTensor(new DataView(new ArrayBuffer(4)), { dtype: 'int8' })).not.toThrow()
})

it('an empty source stays empty', async () => {
  const bytes = new Uint8Array(0)
  const source = new MemorySource(bytes)
  transfer(bytes)
  expect((await source.read(0, 0)).byteLength).toBe(0)
})
