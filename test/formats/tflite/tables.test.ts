/** What tables mean, on files that are built here. */
import { expect, it } from 'vitest'
import { check, open } from '../../../lib/index.js'
import { csrLevel, denseLevel, i32s, sampleModel, tables, tfliteBytes, u64 } from './tflite_bytes.js'

it('reads tensors of every kind', async () => {
  const file = await open(sampleModel())
  expect(file.format).toBe('tflite')
  expect([...file.tensors].map(({ name, dtype, shape }) => [name, dtype, shape])).toEqual([
    ['w', 'float32', [2, 3]],
    ['q', 'int8', [2, 2]],
    ['texts', 'string', [3]],
    ['sparse', 'float32', [2, 3]],
    ['w#2', 'float32', [6]],
  ])
  expect(await file.dense('w').toTypedArray()).toEqual(Float32Array.of(1, 2, 3, 4, 5, 6))
  expect(file.dense('q').quantization).toEqual({ scale: [0.5, 0.25], zeroPoint: [0, 0], axis: 0 })
  expect(await file.dense('sparse').toTypedArray()).toEqual(Float32Array.of(7, 0, 8, 0, 9, 0))
  const texts = file.tensors.get('texts')
  expect(texts?.kind === 'string' && (await texts.strings())).toEqual(['a', 'ü', ''])
  expect(file.tflite?.subgraphs[0]).toMatchObject({ name: 'main', inputs: ['w'], outputs: ['w'] })
  expect(file.tflite?.subgraphs[0]?.tensors[4]).toMatchObject({ shape: [1, 3], shapeSignature: [-1, 3] })
  expect(file.tflite?.signatures).toEqual([
    { key: 'serving_default', subgraph: 0, inputs: new Map([['x', 'w']]), outputs: new Map([['y', 'w']]) },
  ])
  expect(file.tflite?.metadata).toEqual(['notes'])
  expect(await check(sampleModel())).toEqual([])
})

it.each<[string, Parameters<typeof sampleModel>[0], string]>([
  ['an index outside the shape', { sparsity: level(csrLevel([0, 2, 3], [0, 3, 1])) }, 'ERR_COO_INDEX'],
  ['a negative index', { sparsity: level(csrLevel([0, 2, 3], [0, -1, 1])) }, 'ERR_COO_INDEX'],
  ['segments that go down', { sparsity: level(csrLevel([0, 4, 3], [0, 2, 1])) }, 'ERR_COO_INDEX'],
  ['too few segments', { sparsity: level(csrLevel([0, 3], [0, 2, 1])) }, 'ERR_COO_INDEX'],
  ['more places than values', { sparsity: level(denseLevel(3)) }, 'ERR_COO_SHAPE'],
  ['a level of another size', { sparsity: level(denseLevel(2 ** 31 - 1)) }, 'ERR_COO_SHAPE'],
  ['data that end behind the file', { buffers: farBuffers(2n ** 40n, 24n) }, 'ERR_OFFSET_RANGE'],
  ['an offset that wraps', { buffers: farBuffers(2n ** 64n - 16n, 32n) }, 'ERR_OFFSET_RANGE'],
])('%s is refused', async (_, changes, code) => {
  const bytes = sampleModel(changes)
  await expect(open(bytes)).rejects.toMatchObject({ code })
  expect(await check(bytes)).toMatchObject([{ severity: 'error', code }])
})

function level(second: ReturnType<typeof denseLevel>): ReturnType<typeof denseLevel> {
  return { 0: i32s(0, 1), 2: tables(denseLevel(2), second) }
}

function farBuffers(offset: bigint, size: bigint): ReturnType<typeof denseLevel>[] {
  return [{}, { 1: u64(offset), 2: u64(size) }, {}, {}, {}]
}

it('another version and another identifier are refused', async () => {
  await expect(open(tfliteBytes({ 0: { bytes: Uint8Array.of(2, 0, 0, 0) } }))).rejects.toMatchObject({
    code: 'ERR_UNSUPPORTED',
  })
  await expect(open(tfliteBytes({}, 'TFL2'), { format: 'tflite' })).rejects.toMatchObject({
    code: 'ERR_HEADER',
  })
})
