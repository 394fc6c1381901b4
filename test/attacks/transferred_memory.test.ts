/**
 * A caller's memory is transferred away while tilework works on it, and its new owner drops it: the result is an error or the
 * right bytes. A thread that still wrote to that memory would kill this process.
 */
import { rmSync } from 'node:fs'
import { setImmediate } from 'node:timers/promises'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import {
  cast,
  concat,
  type DenseTensor,
  imageToTensor,
  materialize,
  open,
  planReorder,
  reorder,
  save,
  serialize,
  stats,
  TileworkError,
  tensor,
} from '../../lib/index.js'
import { temporaryFolder } from '../cli/temporary_folder.js'

const SHAPE = [8, 64, 64, 128]
const COUNT = 8 * 64 * 64 * 128
const BYTES = 4 * COUNT
const inFolder = temporaryFolder()
let collect: () => void

const path = () => inFolder('source.btf')

beforeAll(async () => {
  setFlagsFromString('--expose-gc')
  collect = runInNewContext('gc') as () => void
  await save(path(), [tensor(new Float32Array(COUNT), { shape: SHAPE })])
})
afterAll(() => rmSync(path(), { force: true }))

const blocked = (numbers: Float32Array) => reorder(tensor(numbers, { shape: SHAPE }), 'b_fs_yx_fsv16')
/** Two tensors that are cast on the way. */
const halves = (numbers: Float32Array) =>
  [0, 1].map((half) => {
    const part = numbers.subarray((half * COUNT) / 2, ((half + 1) * COUNT) / 2)
    return cast(
      tensor(new Int32Array(part.buffer, part.byteOffset, part.length), { shape: [4, 64, 64, 128] }),
      'float32',
    )
  })
const plan = () => planReorder({ dtype: 'float32', shape: SHAPE, from: 'bfyx', to: 'b_fs_yx_fsv16' })

interface Work {
  readonly memory: ArrayBufferLike
  readonly done: Promise<unknown>
}

async function ofFile(use: (dense: DenseTensor, memory: Uint8Array) => Promise<unknown>): Promise<Work> {
  const file = await open(path(), { mode: 'read' })
  const memory = new Uint8Array(BYTES)
  return { memory: memory.buffer, done: use(file.dense(0), memory).finally(() => file.close()) }
}

function ofSource(use: (numbers: Float32Array) => Promise<unknown>): Work {
  const numbers = new Float32Array(COUNT).fill(1)
  return { memory: numbers.buffer, done: use(numbers) }
}

function ofTarget(use: (memory: Uint8Array) => Promise<unknown>): Work {
  const memory = new Uint8Array(BYTES)
  return { memory: memory.buffer, done: use(memory) }
}

const WORK: Record<string, () => Work | Promise<Work>> = {
  'the source of plan.run': () => ofSource((numbers) => plan().run(bytesOf(numbers), new Uint8Array(BYTES))),
  'the destination of plan.run': () => ofTarget((memory) => plan().run(new Uint8Array(BYTES), memory)),
  'the target of copyTo from memory': () =>
    ofTarget((memory) => blocked(new Float32Array(COUNT)).copyTo(memory)),
  'the target of copyTo from a file': () => ofFile((dense, memory) => dense.copyTo(memory)),
  'the target of copyTo of a reordered file': () =>
    ofFile((dense, memory) => reorder(dense, 'b_fs_yx_fsv16').copyTo(memory)),
  'the out of toTypedArray': () =>
    ofFile((dense, memory) => dense.toTypedArray({ out: new Float32Array(memory.buffer) })),
  'the out of materialize': () => ofFile((dense, out) => materialize(dense, { out })),
  'the target of copyTo of joined tensors': () =>
    ofTarget((memory) => concat(halves(new Float32Array(COUNT)), { axis: 0 }).copyTo(memory)),
  'the target of copyTo of tensors joined in short chunks': () =>
    ofTarget((memory) => concat(halves(new Float32Array(COUNT)), { axis: 3 }).copyTo(memory)),
  'joined tensors': () => ofSource((numbers) => concat(halves(numbers), { axis: 0 }).toTypedArray()),
  'the out of an image batch': () =>
    ofTarget((memory) => {
      const images = Array.from({ length: 4 }, () => new Uint8Array(512 * 512 * 4))
      const batch = imageToTensor(images, { width: 512, height: 512, channels: 4 })
      return batch.toTypedArray({ out: new Float32Array(memory.buffer, 0, batch.size) })
    }),
  'a reordered tensor': () => ofSource((numbers) => blocked(numbers).toTypedArray()),
  'a tensor under stats': () => ofSource((numbers) => stats(tensor(numbers, { shape: SHAPE }))),
  'a tensor that is saved': () =>
    ofSource((numbers) => save(inFolder('saved.npy'), [tensor(numbers, { shape: SHAPE })])),
  'a tensor that is reordered and saved': () =>
    ofSource((numbers) => save(inFolder('saved.safetensors'), [blocked(numbers)])),
  'a tensor that is serialized': () =>
    ofSource((numbers) => serialize([blocked(numbers)], { format: 'safetensors' })),
}

function bytesOf(numbers: Float32Array): Uint8Array {
  return new Uint8Array(numbers.buffer, numbers.byteOffset, numbers.byteLength)
}

/** A new function each time, so that no variable keeps what the memory was transferred to. */
function transferAndDrop(memory: ArrayBufferLike): void {
  structuredClone(memory, { transfer: [memory as ArrayBuffer] })
}

describe.each(Object.entries(WORK))('%s', (_, start) => {
  it.each([0, 1, 3])('may be transferred after %d turns of the event loop', async (turns) => {
    const { memory, done } = await start()
    const outcome = done.then(
      () => undefined,
      (error: unknown) => error,
    )
    for (let turn = 0; turn < turns; turn++) await setImmediate()
    transferAndDrop(memory)
    collect()
    const error = await outcome
    if (error === undefined) return
    expect(error).toBeInstanceOf(TileworkError)
    expect(['ERR_ARGUMENT', 'ERR_FILE_CHANGED']).toContain((error as TileworkError).code)
  })
})

describe('memory that nobody can transfer', () => {
  const shared = (): Uint8Array => new Uint8Array(new SharedArrayBuffer(BYTES))

  it('gets the same bytes from a plan and from copyTo', async () => {
    const numbers = Float32Array.from({ length: COUNT }, (_, i) => i)
    const expected = new Uint8Array(BYTES)
    plan().runSync(bytesOf(numbers), expected)
    const [source, fromPlan, fromPlain] = [shared(), shared(), new Uint8Array(BYTES)]
    source.set(bytesOf(numbers))
    await plan().run(source, fromPlan)
    await plan().run(source, fromPlain)
    const copied = shared()
    await blocked(numbers).copyTo(copied)
    for (const found of [fromPlan, fromPlain, copied]) expect(Buffer.compare(found, expected)).toBe(0)
  })
})

it('a plan refuses overlapping buffers before it writes', async () => {
  const buffer = new ArrayBuffer(2 * BYTES)
  const source = new Uint8Array(buffer, 0, BYTES).fill(7)
  const destination = new Uint8Array(buffer, BYTES - 4, BYTES)
  await expect(plan().run(source, destination)).rejects.toThrow('overlap')
  expect(source.every((byte) => byte === 7)).toBe(true)
})
