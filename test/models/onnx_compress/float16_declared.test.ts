/** A value that is declared in two lists has one type afterwards. */
import { expect, it } from 'vitest'
import { open, serialize } from '../../../lib/index.js'
import { toFloat16 } from '../../../lib/onnx.js'
import { type Bytes, field, int, join, modelProto } from '../../formats/onnx/onnx_bytes.js'

/** A float32 value; without a shape of unknown rank. */
const info = (name: string, shape?: Bytes): Bytes =>
  join(field(1, name), field(2, field(1, join(int(1, 1), shape ? field(2, shape) : []))))

it('keeps the shape of an output that is listed among the other values without one', async () => {
  const shape = field(1, int(1, 3))
  const node = join(field(1, 'x'), field(2, 'y'), field(4, 'Relu'))
  const bytes = modelProto(
    join(
      field(1, node),
      field(2, 'g'),
      field(11, info('x', shape)),
      field(12, info('y', shape)),
      field(13, info('y')),
    ),
  )
  const model = (await open(bytes, { format: 'onnx', level: 'lenient' })).onnx!
  await toFloat16(model, { keepIo: false })
  const again = (await open(await serialize(model, { format: 'onnx' }))).onnx!
  const type = { kind: 'tensor', dtype: 'float16', shape: [3] }
  expect(again.graph.outputs[0]!.type).toEqual(type)
  expect(again.graph.valueInfo[0]!.type).toEqual(type)
})
