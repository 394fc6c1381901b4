/**
 * Plans as the addon exports them: slices, views, source ranges, sparse sources, sources and results in files, and
 * invalid arguments.
 */
import { mkdtempSync, readFileSync, rmSync, truncateSync, utimesSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { native } from '../../lib/native/addon.js'
import type { NativePlanDescription, NativeReorderPlan, NativeSide } from '../../lib/native/types.js'

let folder: string
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'tilework-addon-reorder-'))
})
afterAll(() => rmSync(folder, { recursive: true, force: true }))

function rowMajor(shape: readonly number[], order = shape.map((_, axis) => axis)): NativeSide {
  const digits = order.map((axis) => ({ axes: [axis], radix: shape[axis]!, weight: 1 }))
  return {
    lower: shape.map(() => 0),
    upper: shape.map(() => 0),
    elements: shape.reduce((product, extent) => product * extent, 1),
    pieces: [{ axis: 0, lo: 0, hi: Number.MAX_SAFE_INTEGER, digits }],
  }
}

/** b_fs_yx_fsv<block> of a shape b, f, y, x. */
function featureBlocks(shape: readonly number[], block: number): NativeSide {
  const [b, f, y, x] = shape as [number, number, number, number]
  const slices = Math.ceil(f / block)
  const digits = [
    { axes: [0], radix: b, weight: 1 },
    { axes: [1], radix: slices, weight: block },
    { axes: [2], radix: y, weight: 1 },
    { axes: [3], radix: x, weight: 1 },
    { axes: [1], radix: block, weight: 1 },
  ]
  const side = rowMajor(shape)
  return { ...side, elements: b * slices * y * x * block, pieces: [{ ...side.pieces[0]!, digits }] }
}

function transpose(rows: number, columns: number, elementBits = 8): NativePlanDescription {
  const shape = [rows, columns]
  return { elementBits, shape, from: rowMajor(shape), to: rowMajor(shape, [1, 0]) }
}

function counted(length: number): Uint8Array {
  const bytes = new Uint8Array(length)
  for (let i = 0; i < length; i++) bytes[i] = i * 7 + (i >> 8)
  return bytes
}

function computed(plan: NativeReorderPlan, source: Uint8Array): Uint8Array {
  const result = new Uint8Array(plan.destinationBytes)
  plan.runSync(source, result, 0, result.length)
  // As a part of a result that no cache holds, which streaming stores write.
  const part = new Uint8Array(result.length)
  plan.runSync(source, part, 0, part.length, 2 ** 40)
  expect(Buffer.compare(part, result)).toBe(0)
  return result
}

function file(name: string, bytes: Uint8Array): string {
  const path = join(folder, name)
  writeFileSync(path, bytes)
  return path
}

const failing = (code: string) => expect.objectContaining({ code })

describe('slices', () => {
  test('take ranges, steps and reversals', () => {
    const plan = native().planReorder({
      elementBits: 8,
      shape: [2, 3],
      from: rowMajor([4, 7]),
      to: rowMajor([2, 3]),
      slice: { shape: [4, 7], start: [3, 1], step: [-2, 2] },
    })
    expect([plan.sourceBytes, plan.destinationBytes]).toEqual([28, 6])
    const source = Uint8Array.from({ length: 28 }, (_, i) => i)
    expect([...computed(plan, source)]).toEqual([22, 24, 26, 8, 10, 12])
    expect(plan.explain()).toMatchObject({
      kind: 'loop-nest',
      nodes: [{ sourceStride: -14 }, { sourceStride: 2 }],
    })
    expect(plan.copyOffset).toBeUndefined()
  })

  test('are views where they are one range of the source', () => {
    const plan = native().planReorder({
      elementBits: 32,
      shape: [2, 32, 3, 5],
      from: featureBlocks([6, 32, 3, 5], 16),
      to: featureBlocks([2, 32, 3, 5], 16),
      slice: { shape: [6, 32, 3, 5], start: [3, 0, 0, 0], step: [1, 1, 1, 1] },
    })
    const offset = 3 * 32 * 15 * 4
    expect(plan.copyOffset).toBe(offset)
    const reason = `the destination is one range of the source, from byte ${offset} on`
    expect(plan.explain()).toMatchObject({ kind: 'view', kernel: expect.stringMatching(/^copy_/), reason })
    const source = counted(plan.sourceBytes)
    expect(computed(plan, source)).toEqual(source.subarray(offset, offset + plan.destinationBytes))
    const whole = native().planReorder({
      elementBits: 16,
      shape: [5],
      from: rowMajor([5]),
      to: rowMajor([5]),
    })
    expect(whole.copyOffset).toBe(0)
    expect(whole.explain().kind).toBe('identity')
  })

  test('are rejected outside the source', () => {
    const slice = (start: unknown, step: unknown, shape: unknown = [9]) =>
      native().planReorder({
        elementBits: 8,
        shape: [3],
        from: rowMajor([9]),
        to: rowMajor([3]),
        slice: { shape, start, step },
      } as NativePlanDescription)
    expect(slice([8], [-4]).destinationBytes).toBe(3)
    expect(() => slice([1], [4])).toThrow(failing('ERR_RANGE'))
    expect(() => slice([3], [-2])).toThrow(failing('ERR_RANGE'))
    for (const [start, step] of [
      [[-1], [1]],
      [[0], [0]],
      [[0], [0.5]],
      [[0], []],
      [0, [1]],
      [[0], ['1']],
      [[0], [Number.NaN]],
    ]) {
      expect(() => slice(start, step)).toThrow(failing('ERR_ARGUMENT'))
    }
    expect(() => slice([0], [-(2 ** 60)])).toThrow(failing('ERR_OVERFLOW'))
    expect(() => slice([0], [1], [10])).toThrow(failing('ERR_ARGUMENT'))
  })
})

describe('pieces', () => {
  test('are rejected where two of them share a slot', () => {
    const shape = [3, 4]
    const [piece] = rowMajor(shape).pieces
    const to = {
      ...rowMajor(shape),
      pieces: [
        { ...piece!, axis: 1, hi: 2 },
        { ...piece!, axis: 1, lo: 2, digits: [...piece!.digits].reverse() },
      ],
    }
    expect(() => native().planReorder({ elementBits: 8, shape, from: rowMajor(shape), to })).toThrow(
      failing('ERR_ARGUMENT'),
    )
  })
})

describe('ranges of the source', () => {
  test('cover the rows of each plane that a tile reads', () => {
    const shape = [1, 32, 128, 128]
    const plan = native().planReorder({
      elementBits: 32,
      shape,
      from: rowMajor(shape),
      to: featureBlocks(shape, 16),
    })
    const ranges = plan.sourceRanges(0, 16 * 64 * 4 * 4)
    expect(ranges).toBeInstanceOf(Float64Array)
    const expected = Array.from({ length: 16 }, (_, f) => [f * 65536, f * 65536 + 1024]).flat()
    expect([...ranges]).toEqual(expected)
    expect(plan.sourceRanges(64, 64).length).toBe(0)
    expect(() => plan.sourceRanges(0, 2)).toThrow(failing('ERR_ARGUMENT'))
    expect(() => plan.sourceRanges(0, 2 ** 40)).toThrow(failing('ERR_ARGUMENT'))
    expect(() => (plan.sourceRanges as (...all: unknown[]) => void)('0')).toThrow(failing('ERR_ARGUMENT'))
  })
})

describe('sparse buffers', () => {
  test('are a source that holds only some ranges', async () => {
    const plan = native().planReorder(transpose(2048, 4096))
    const source = counted(plan.sourceBytes)
    const expected = computed(plan, source)
    const sparse = native().createSparseBuffer(plan.sourceBytes)
    expect(sparse.byteLength).toBe(plan.sourceBytes)
    const [start, end] = [100 * 2048, 101 * 2048]
    const ranges = plan.sourceRanges(start, end)
    for (let i = 0; i < ranges.length; i += 2) {
      sparse.fill(source.subarray(ranges[i]!, ranges[i + 1]!), ranges[i]!)
    }
    const result = new Uint8Array(end - start)
    plan.runSync(sparse, result, start, end)
    expect(Buffer.compare(result, expected.subarray(start, end))).toBe(0)
    result.fill(9)
    await plan.run(sparse, result, start, end)
    expect(Buffer.compare(result, expected.subarray(start, end))).toBe(0)
    sparse.clear()
    plan.runSync(sparse, result, start, end)
    expect(result.every((byte) => byte === 0)).toBe(true)
  })

  test('cannot be changed during a run', async () => {
    const plan = native().planReorder(transpose(3000, 3000))
    const sparse = native().createSparseBuffer(plan.sourceBytes)
    sparse.fill(counted(plan.sourceBytes), 0)
    // Enough runs that some are still queued when the next line executes.
    const runs = Array.from({ length: 40 }, () =>
      plan.run(sparse, new Uint8Array(plan.sourceBytes), 0, plan.sourceBytes),
    )
    expect(() => sparse.clear()).toThrow(failing('ERR_ARGUMENT'))
    expect(() => sparse.fill(new Uint8Array(1), 0)).toThrow(failing('ERR_ARGUMENT'))
    await Promise.all(runs)
    sparse.fill(new Uint8Array(1), 0)
    sparse.clear()
  })

  test('reject ranges and bytes that do not fit', () => {
    const sparse = native().createSparseBuffer(1000)
    expect(() => sparse.fill(new Uint8Array(2), 999)).toThrow(failing('ERR_RANGE'))
    expect(() => sparse.fill(new Uint8Array(1), -1)).toThrow(failing('ERR_ARGUMENT'))
    expect(() => sparse.fill([1] as never, 0)).toThrow(failing('ERR_ARGUMENT'))
    expect(() => native().createSparseBuffer(2 ** 52)).toThrow(failing('ERR_LIMIT'))
    expect(() => native().createSparseBuffer('1' as never)).toThrow(failing('ERR_ARGUMENT'))
    expect(() => native().planReorder(transpose(3, 3)).runSync(sparse, new Uint8Array(9), 0, 9)).toThrow(
      failing('ERR_ARGUMENT'),
    )
    const Sparse = sparse.constructor as new () => unknown
    expect(() => new Sparse()).toThrow('createSparseBuffer')
    native().createSparseBuffer(0).fill(new Uint8Array(), 0)
  })
})

const IMAGE = [2, 35, 100, 130]
const BLOCKS: NativePlanDescription = {
  elementBits: 32,
  shape: IMAGE,
  from: rowMajor(IMAGE),
  to: featureBlocks(IMAGE, 16),
}
const SLICED: NativePlanDescription = {
  elementBits: 32,
  shape: [1, 35, 100, 130],
  from: rowMajor(IMAGE),
  to: rowMajor([1, 35, 100, 130]),
  slice: { shape: IMAGE, start: [1, 0, 0, 0], step: [1, 1, 1, 1] },
}
const CASES: readonly [string, NativePlanDescription][] = [
  ['blocks', BLOCKS],
  ['planes', { ...BLOCKS, from: BLOCKS.to, to: BLOCKS.from }],
  ['a transpose', transpose(300, 2100, 64)],
  ['a view', SLICED],
]

describe.each(CASES)('sources in files: %s', (name, description) => {
  const OFFSET = 77

  test('give the same bytes as in memory, mapped or read, into memory or a file', async () => {
    const plan = native().planReorder(description)
    const source = counted(plan.sourceBytes)
    const expected = computed(plan, source)
    const path = file('source', Buffer.concat([new Uint8Array(OFFSET).fill(9), source]))
    const before = native().threads()
    for (const mapped of [false, true]) {
      const input = native().openInput(path, { mapped, guard: false })
      const result = new Uint8Array(plan.destinationBytes)
      plan.runFileSync(input, OFFSET, result, 0, result.length)
      expect(Buffer.compare(result, expected)).toBe(0)
      result.fill(9)
      await plan.runFile(input, OFFSET, result, 0, result.length)
      expect(Buffer.compare(result, expected)).toBe(0)
      for (const threads of [1, 2, 7]) {
        native().setThreads(threads)
        const target = join(folder, 'target')
        const [start, middle] = [16, 1_000_000]
        const output = native().createOutput(target, 5 + expected.length - start)
        await Promise.all([
          plan.runToFile(input, OFFSET, output, start, middle, 5),
          plan.runToFile(input, OFFSET, output, middle, expected.length, 5 + middle - start),
        ])
        await output.commit()
        expect(Buffer.compare(readFileSync(target).subarray(5), expected.subarray(start))).toBe(0)
      }
      input.close(false)
    }
    native().setThreads(before)
    rmSync(path)
  })

  test('a changed file is detected', async () => {
    const plan = native().planReorder(description)
    const result = new Uint8Array(plan.destinationBytes)
    const path = file(`changed ${name}`, new Uint8Array(plan.sourceBytes))
    const input = native().openInput(path, { mapped: false, guard: false })
    const output = native().createOutput(join(folder, 'unwritten'), result.length)
    truncateSync(path, 1000)
    const changed = failing('ERR_FILE_CHANGED')
    expect(() => plan.runFileSync(input, 0, result, 0, result.length)).toThrow(changed)
    expect(() => plan.runFile(input, 0, result, 0, result.length)).toThrow(changed)
    expect(() => plan.runToFile(input, 0, output, 0, result.length, 0)).toThrow(changed)
    truncateSync(path, plan.sourceBytes)
    const again = native().openInput(path, { mapped: false, guard: false })
    // The file changes while the run waits for the only thread. One transpose takes about 10 ms, in which a busy
    // machine may not get to the next line.
    const before = native().threads()
    native().setThreads(1)
    const slow = native().planReorder(transpose(4000, 4000))
    const matrix = new Uint8Array(slow.sourceBytes)
    const transposed = new Uint8Array(slow.destinationBytes)
    const busy = Promise.all(
      Array.from({ length: 20 }, () => slow.run(matrix, transposed, 0, transposed.length)),
    )
    const run = plan.runToFile(again, 0, output, 0, result.length, 0)
    utimesSync(path, 1, 1)
    await expect(run).rejects.toEqual(changed)
    await busy
    native().setThreads(before)
    await expect(output.commit()).rejects.toEqual(failing('ERR_IO'))
  })
})

describe('runs that write files', () => {
  test('stop when the cancel flag is set; the output cannot be committed', async () => {
    const plan = native().planReorder(BLOCKS)
    const input = native().openInput(file('cancelled', new Uint8Array(plan.sourceBytes)), {
      mapped: false,
      guard: false,
    })
    const output = native().createOutput(join(folder, 'cancelled target'), plan.destinationBytes)
    const cancel = new Int32Array(new SharedArrayBuffer(4)).fill(1)
    const run = plan.runToFile(input, 0, output, 0, plan.destinationBytes, 0, cancel)
    await expect(run).rejects.toEqual(failing('ERR_ABORTED'))
    await expect(output.commit()).rejects.toEqual(failing('ERR_IO'))
  })

  test('continue when the input is closed during the run', async () => {
    const plan = native().planReorder(transpose(2000, 2000))
    const source = counted(plan.sourceBytes)
    const input = native().openInput(file('closed', source), { mapped: false, guard: false })
    const output = native().createOutput(join(folder, 'closed target'), plan.destinationBytes)
    const run = plan.runToFile(input, 0, output, 0, plan.destinationBytes, 0)
    input.close(false)
    await run
    await output.commit()
    expect(Buffer.compare(readFileSync(join(folder, 'closed target')), computed(plan, source))).toBe(0)
  })

  test('reject invalid files, ranges and offsets', () => {
    const plan = native().planReorder(transpose(10, 10))
    const input = native().openInput(file('hundred', counted(100)), { mapped: false, guard: false })
    const output = native().createOutput(join(folder, 'refused'), 100)
    const refused = (code: string, ...parameters: unknown[]) => {
      const run = plan.runToFile as (...all: unknown[]) => void
      expect(() => run.apply(plan, parameters)).toThrow(failing(code))
    }
    refused('ERR_ARGUMENT')
    refused('ERR_ARGUMENT', {}, 0, output, 0, 100, 0)
    refused('ERR_ARGUMENT', input, 0, {}, 0, 100, 0)
    refused('ERR_ARGUMENT', output, 0, input, 0, 100, 0)
    refused('ERR_ARGUMENT', input, 0, output, 0, 101, 0)
    refused('ERR_ARGUMENT', input, 0, output, 0, 100, -1)
    refused('ERR_ARGUMENT', input, 0, output, 0, 100, 0, 'cancel')
    refused('ERR_RANGE', input, 1, output, 0, 100, 0)
    refused('ERR_OVERFLOW', input, 0, output, 0, 100, Number.MAX_SAFE_INTEGER)
    output.abort()
    refused('ERR_CLOSED', input, 0, output, 0, 100, 0)
    input.close(false)
    refused('ERR_CLOSED', input, 0, output, 0, 100, 0)
  })
})

describe('arguments that misreport themselves', () => {
  const plan = native().planReorder(transpose(10, 10))
  const refuse = (source: unknown, destination: unknown) => {
    for (const run of ['runSync', 'run'] as const) {
      expect(() => plan[run](source as Uint8Array, destination as Uint8Array, 0, 100)).toThrow(
        failing('ERR_ARGUMENT'),
      )
    }
  }
  const refuseJob = (source: Uint8Array, destination: Uint8Array) =>
    expect(() => plan.run(source, destination, 0, 100)).toThrow(failing('ERR_ARGUMENT'))

  test('jobs reject resizable buffers, even disguised ones', () => {
    const resizable = () =>
      Reflect.construct(ArrayBuffer, [100, { maxByteLength: 200 }]) as ArrayBuffer & { resizable: boolean }
    refuseJob(new Uint8Array(100), new Uint8Array(resizable()))
    const liar = resizable()
    Object.defineProperty(liar, 'resizable', { value: false })
    refuseJob(new Uint8Array(liar), new Uint8Array(100))
    const getter = Object.getOwnPropertyDescriptor(ArrayBuffer.prototype, 'resizable')!
    Object.defineProperty(ArrayBuffer.prototype, 'resizable', { configurable: true, get: () => false })
    try {
      refuseJob(new Uint8Array(resizable()), new Uint8Array(100))
    } finally {
      Object.defineProperty(ArrayBuffer.prototype, 'resizable', getter)
    }
    const cancel = new Int32Array(resizable())
    const run = () => plan.run(new Uint8Array(100), new Uint8Array(100), 0, 100, cancel)
    expect(run).toThrow(failing('ERR_ARGUMENT'))
  })

  test('synchronous calls accept resizable buffers', () => {
    const buffer = Reflect.construct(ArrayBuffer, [100, { maxByteLength: 200 }]) as ArrayBuffer
    const result = new Uint8Array(buffer)
    plan.runSync(
      Uint8Array.from({ length: 100 }, (_, i) => i),
      result,
    )
    expect(result.subarray(0, 3)).toEqual(Uint8Array.of(0, 10, 20))
    ;(buffer as ArrayBuffer & { resize(length: number): void }).resize(99)
    refuse(new Uint8Array(100), result)
  })

  test('properties with side effects are never read', () => {
    const source = new Uint8Array(100)
    let looked = false
    Object.defineProperty(source.buffer, 'resizable', {
      get: () => {
        looked = true
        structuredClone(source.buffer, { transfer: [source.buffer] })
        return false
      },
    })
    plan.runSync(source, new Uint8Array(100), 0, 100)
    expect(looked).toBe(false)
  })

  test('detached buffers are rejected', () => {
    const detached = new Uint8Array(100)
    structuredClone(detached.buffer, { transfer: [detached.buffer] })
    refuse(detached, new Uint8Array(100))
    refuse(new Uint8Array(100), detached)
    const flag = new Int32Array(1)
    structuredClone(flag.buffer, { transfer: [flag.buffer] })
    const run = () => plan.run(new Uint8Array(100), new Uint8Array(100), 0, 100, flag)
    expect(run).toThrow(failing('ERR_ARGUMENT'))
  })

  test('values of every other type are rejected', () => {
    const values: unknown[] = [
      undefined,
      null,
      true,
      1,
      1n,
      'x',
      Symbol('x'),
      {},
      [],
      () => 0,
      new DataView(new ArrayBuffer(100)),
    ]
    values.push(
      new Proxy(new Uint8Array(100), {}),
      Object.create(new Uint8Array(100)),
      new Float32Array(25),
      plan,
    )
    for (const value of values) {
      refuse(value, new Uint8Array(100))
      refuse(new Uint8Array(100), value)
      const methods = ['run', 'runFile', 'runFileSync', 'runToFile'] as const
      for (const method of methods) {
        const call = plan[method] as (...all: unknown[]) => unknown
        expect(() => call.call(plan, value, value, value, value, value, value, value)).toThrow()
      }
      expect(() =>
        (native().createSparseBuffer as (size: unknown) => void)(value === 1 ? -1 : value),
      ).toThrow()
    }
    const { fill } = native().createSparseBuffer(10)
    expect(() => fill.call(plan as never, new Uint8Array(1), 0)).toThrow(TypeError)
    expect(() => plan.explain.call(native().createSparseBuffer(10) as never)).toThrow(TypeError)
  })
})
