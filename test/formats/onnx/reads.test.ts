/** A check reads a graph in windows: one read for each node would take as long as everything else. */
import { expect, test } from 'vitest'
import { onnx } from '../../../lib/models/onnx/index.js'
import { CountingSource } from '../../attacks/counting_source.js'
import {
  type Bytes,
  field,
  int,
  join,
  modelProto,
  nodeProto,
  readOptions,
  tensorProto,
} from './onnx_bytes.js'

const NODES = 5000

/** Walks over a graph that a strict check makes: listing, external files, validation, one for each kind of name, inference. */
const WALKS = 16

class ReadCounter extends CountingSource {
  reads = 0

  override readSync(start: number, end: number): Uint8Array {
    this.reads++
    return super.readSync(start, end)
  }
}

async function readsOf(bytes: Bytes): Promise<ReadCounter> {
  const source = new ReadCounter(bytes)
  expect(await onnx.check(source, readOptions('strict'))).toEqual([])
  return source
}

const tensorType = field(1, join(int(1, 1), field(2, join(field(1, int(1, 2)), field(1, int(1, 64))))))

/** A chain of nodes with attributes that every operator takes, initializers of one number, and a type for every value. */
function chain(): Bytes {
  const alpha = field(5, join(field(1, '__alpha'), [0x15, 0, 0, 0x80, 0x3f], int(20, 1)))
  const parts: Bytes[] = []
  for (let at = 0; at < NODES; at++) {
    const names = {
      op: 'PRelu',
      inputs: [at === 0 ? 'x' : `block/value_${at - 1}`, `w_${at}`],
      outputs: [`block/value_${at}`],
    }
    parts.push(field(1, join(nodeProto(names), alpha)))
  }
  parts.push(field(2, 'g'))
  const values = field(9, [0, 0, 0, 0])
  for (let at = 0; at < NODES; at++) parts.push(field(5, tensorProto({ dims: [1], name: `w_${at}`, values })))
  const typed = (name: string): Bytes => join(field(1, name), field(2, tensorType))
  parts.push(field(11, typed('x')), field(12, typed(`block/value_${NODES - 1}`)))
  for (let at = 0; at < NODES - 1; at++) parts.push(field(13, typed(`block/value_${at}`)))
  return modelProto(join(...parts))
}

test('a graph of small messages is read in windows', async () => {
  const bytes = chain()
  const { reads, bytesRead } = await readsOf(bytes)
  expect(reads).toBeLessThan(200)
  expect(bytesRead).toBeLessThan(WALKS * bytes.length)
})

test('large values are skipped', async () => {
  const values = field(9, new Uint8Array(2 ** 18))
  const initializers = Array.from({ length: 40 }, (_, at) =>
    tensorProto({ dims: [2 ** 16], name: `w_${at}`, values }),
  )
  const bytes = modelProto({ initializers, inputs: ['x'], outputs: ['x'] })
  const { bytesRead } = await readsOf(bytes)
  expect(bytesRead).toBeLessThan(bytes.length / 10)
})
