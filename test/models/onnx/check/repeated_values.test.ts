/** Tree ensembles have millions of numbers that are not packed, each a field of its own: no walk may make a call for each. */
import { afterEach, expect, it, vi } from 'vitest'
import { WireCursor } from '../../../../lib/formats/onnx/protobuf/wire.js'
import { check, open } from '../../../../lib/index.js'
import { summarizeOnnx } from '../../../../lib/onnx.js'
import { field, fixed, int, join } from '../../../formats/onnx/onnx_bytes.js'
import { node, value } from './model_bytes.js'

const COUNT = 100_000

const each = (make: (at: number) => Uint8Array): Uint8Array =>
  join(...Array.from({ length: COUNT }, (_, at) => make(at)))
const floatBytes = (number: number): Uint8Array => new Uint8Array(Float32Array.of(number).buffer)

const integerAt = (at: number): number => (at % 3 === 0 ? -1 - at : at * 2 ** (at % 20))
const ATTRIBUTES = {
  ints: join(
    field(1, 'ints'),
    each((at) => int(8, integerAt(at))),
    int(20, 7),
  ),
  floats: join(
    field(1, 'floats'),
    each((at) => fixed(7, floatBytes(at / 8))),
    int(20, 6),
  ),
  strings: join(
    field(1, 'strings'),
    each((at) => field(9, `S${at % 7}`)),
    int(20, 8),
  ),
}

function model(): Uint8Array {
  const trees = node({ op: 'Trees', domain: 'test', attributes: Object.values(ATTRIBUTES) })
  const graph = join(field(1, trees), field(2, 'g'), field(11, value('x')), field(12, value('y')))
  const opsets = [join(field(1, ''), int(2, 17)), join(field(1, 'test'), int(2, 1))]
  return join(int(1, 8), field(7, graph), ...opsets.map((opset) => field(8, opset)))
}

afterEach(() => vi.restoreAllMocks())

/** Calls that read a field, in all walks of an action together. */
async function fieldsRead(action: () => Promise<unknown>): Promise<number> {
  const calls = [vi.spyOn(WireCursor.prototype, 'heldField'), vi.spyOn(WireCursor.prototype, 'field')]
  await action()
  return calls.reduce((sum, { mock }) => sum + mock.calls.length, 0)
}

it('are passed over by inspect', async () => {
  const bytes = model()
  const count = await fieldsRead(async () => summarizeOnnx((await open(bytes)).onnx!))
  expect(count).toBeLessThan(2000)
})

it('are passed over by a strict check, which finds nothing', async () => {
  const bytes = model()
  const count = await fieldsRead(async () => expect(await check(bytes, { level: 'strict' })).toEqual([]))
  expect(count).toBeLessThan(4000)
})

it('are read as they are', async () => {
  const [trees] = (await open(model())).onnx!.graph.nodes
  const [ints, floats, strings] = trees!.attributes.map(({ value: values }) => values as readonly unknown[])
  expect(ints).toEqual(Array.from({ length: COUNT }, (_, at) => integerAt(at)))
  expect(floats).toEqual(Array.from({ length: COUNT }, (_, at) => at / 8))
  expect((strings as Uint8Array[]).map((text) => Buffer.from(text).toString())).toEqual(
    Array.from({ length: COUNT }, (_, at) => `S${at % 7}`),
  )
})
