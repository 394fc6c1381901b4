/** DLPack capsules: round trips, and exchange with an addon in C in both directions. */
import { spawnSync } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { tmpdir } from 'node:os'
import { dirname, join, resolve } from 'node:path'
import { afterAll, describe, expect, it } from 'vitest'
import {
  asTensor,
  type DlpackCapsule,
  DTYPES,
  type Dtype,
  fromDlpack,
  open,
  reorder,
  serialize,
  tensor,
  toDlpack,
} from '../../lib/index.js'
import { native } from '../../lib/native/addon.js'

const require = createRequire(import.meta.url)
const root = resolve(import.meta.dirname, '../..')
const folder = mkdtempSync(join(tmpdir(), 'tilework-dlpack-'))
afterAll(() => rmSync(folder, { recursive: true }))

interface Consumed {
  readonly code: number
  readonly bits: number
  readonly lanes: number
  readonly device: number
  readonly flags: number
  readonly major: number
  readonly shape: number[]
  readonly strides: number[]
  readonly bytes: ArrayBuffer
}

interface Consumer {
  consume(capsule: object): Consumed | undefined
  produce(strided: boolean, extent: number): DlpackCapsule
  deletedCount(): number
}

/** How compilers name the processors of Node. */
const CPU_OF_MACHINE: Partial<Record<NodeJS.Architecture, RegExp>> = {
  x64: /^x86_64-/,
  arm64: /^(?:aarch64|arm64)-/,
}

const consumer = compileConsumer()

/** Compiled by this test with a C compiler and the headers only. */
function compileConsumer(): Consumer | undefined {
  const output = join(folder, 'consumer.node')
  const headers = join(dirname(require.resolve('node-api-headers')), 'include')
  const includes = ['-I', headers, '-I', join(root, 'native')]
  const platform = process.platform === 'darwin' ? ['-undefined', 'dynamic_lookup'] : []
  const options = [
    '-shared',
    '-fPIC',
    '-Wall',
    '-Wextra',
    '-Werror',
    '-DNAPI_VERSION=9',
    ...includes,
    ...platform,
  ]
  const source = join(root, 'test/native/dlpack/consumer.c')
  const compiler = process.env.CC ?? 'cc'
  const machine = spawnSync(compiler, ['-dumpmachine'], { encoding: 'utf8' }).stdout ?? ''
  const { error, status, stderr } = spawnSync(compiler, [...options, source, '-o', output, '-lpthread'], {
    encoding: 'utf8',
  })
  const isForeign = !CPU_OF_MACHINE[process.arch]?.test(machine)
  if (error || isForeign) {
    const reason = error?.message ?? `makes programs for ${machine.trim()}`
    console.warn(`skipped: the consumer in C cannot be compiled (${compiler}: ${reason})`)
    return undefined
  }
  if (status !== 0) throw new Error(stderr)
  return require(output) as Consumer
}

const FIXED = (Object.keys(DTYPES) as Dtype[]).filter((dtype) => dtype !== 'string')

const tensorOfType = (dtype: Dtype) => {
  const byteLength = Math.ceil((6 * (DTYPES[dtype].bits ?? 8)) / 8)
  const bytes = Uint8Array.from({ length: byteLength }, (_, at) => (at % 2 === 0 ? 1 : 0))
  return asTensor(bytes, { dtype, shape: [3, 2], name: 'n' })
}

describe('a capsule', () => {
  it.each(FIXED)('round-trips %s', async (dtype) => {
    const given = tensorOfType(dtype)
    for (const legacy of [false, true]) {
      const capsule = await toDlpack(given, { legacy })
      expect(capsule.name).toBe(legacy ? 'dltensor' : 'dltensor_versioned')
      const back = fromDlpack(capsule, { name: 'back' })
      expect([back.dtype, back.shape, back.name]).toEqual([dtype, [3, 2], 'back'])
      expect(await back.bytes()).toEqual(new Uint8Array(await given.bytes()))
    }
  })

  it('is empty after its tensor is taken, and keeps a tensor that cannot be taken', async () => {
    const capsule = await toDlpack(tensor([1, 2], { dtype: 'int16' }))
    fromDlpack(capsule)
    for (const wrong of [capsule, {}, null, 7, native()])
      expect(() => fromDlpack(wrong as never)).toThrow(expect.objectContaining({ code: 'ERR_ARGUMENT' }))
  })

  it('takes scalars and empty tensors', async () => {
    for (const shape of [[], [0, 3]]) {
      const given = asTensor(new Float64Array(shape.length === 0 ? 1 : 0), { shape })
      expect(fromDlpack(await toDlpack(given)).shape).toEqual(shape)
    }
  })

  it('rejects layouts that strides cannot represent', async () => {
    const blocked = reorder(asTensor(new Float32Array(32), { shape: [1, 2, 4, 4] }), 'b_fs_yx_fsv16')
    await expect(toDlpack(blocked)).rejects.toMatchObject({ code: 'ERR_UNSUPPORTED' })
    await expect(toDlpack({} as never)).rejects.toMatchObject({ code: 'ERR_ARGUMENT' })
  })

  it('shares the mapping of a file and keeps it alive', async () => {
    const path = join(folder, 'large.npy')
    const values = Float32Array.from({ length: 65_536 }, (_, at) => at)
    writeFileSync(path, await serialize(asTensor(values, { shape: [256, 256] }), { format: 'npy' }))
    const before = native().liveMappings()
    const file = await open(path, { mode: 'map' })
    const capsule = await toDlpack(file.dense(0))
    file.close()
    expect(native().liveMappings()).toBe(before + 1)
    const back = fromDlpack(capsule)
    expect(await back.toTypedArray()).toEqual(values)
  })
})

describe.skipIf(!consumer)('an addon in C', () => {
  it.each(FIXED)('reads %s', async (dtype) => {
    const given = tensorOfType(dtype)
    const found = consumer!.consume(await toDlpack(given))!
    expect([found.code, found.bits, found.lanes, found.device, found.major]).toEqual([
      DLPACK_CODES[dtype],
      DTYPES[dtype].bits,
      1,
      1,
      1,
    ])
    expect([found.shape, found.strides, found.flags]).toEqual([[3, 2], [2, 1], 2])
    expect(new Uint8Array(found.bytes)).toEqual(new Uint8Array(await given.bytes()))
    const legacy = consumer!.consume(await toDlpack(given, { legacy: true }))!
    expect([legacy.flags, legacy.major, legacy.bits]).toEqual([-1, 0, DTYPES[dtype].bits])
    expect(consumer!.consume({})).toBeUndefined()
  })

  it('receives the read-only flag of a mapping, and releases it on another thread', async () => {
    const path = join(folder, 'mapped.npy')
    writeFileSync(path, await serialize(asTensor(new Float32Array(4096).fill(1.5)), { format: 'npy' }))
    using file = await open(path)
    const capsule = await toDlpack(file.dense(0))
    const found = consumer!.consume(capsule)!
    expect([found.flags, new Float32Array(found.bytes)[4095]]).toEqual([1, 1.5])
    expect(consumer!.consume(capsule)).toBeUndefined()
  })

  it('produces tensors: strided ones are copied and deleted at once, others are shared while in use', async () => {
    const before = consumer!.deletedCount()
    const strided = fromDlpack(consumer!.produce(true, 0))
    expect([...(await strided.toTypedArray())]).toEqual([0, 2, 4, 1, 3, 5])
    expect(consumer!.deletedCount()).toBe(before + 1)
    const shared = fromDlpack(consumer!.produce(false, 100_000))
    expect([shared.shape, shared.at(99_999)]).toEqual([[100_000], 99_999])
    expect(consumer!.deletedCount()).toBe(before + 1)
  })
})

describe.skipIf(!consumer)('a tensor that repeats one element', () => {
  const LIMIT = expect.objectContaining({ code: 'ERR_LIMIT' })

  it('is rejected above the limit and stays in its capsule, so that a higher limit can take it', async () => {
    const before = consumer!.deletedCount()
    const capsule = consumer!.produce(false, -1000)
    expect(() => fromDlpack(capsule, { maxBytes: 3999 })).toThrow(LIMIT)
    expect(() => fromDlpack(capsule, { maxBytes: -1 })).toThrow(
      expect.objectContaining({ code: 'ERR_ARGUMENT' }),
    )
    expect(consumer!.deletedCount()).toBe(before)
    expect(fromDlpack(capsule, { maxBytes: 4000 }).shape).toEqual([1000])
    expect(consumer!.deletedCount()).toBe(before + 1)
  })

  it('is limited to 64 MiB by default', () => {
    expect(() => fromDlpack(consumer!.produce(false, -(2 ** 24 + 1)))).toThrow(LIMIT)
    expect(() => fromDlpack(consumer!.produce(false, -(2 ** 40)))).toThrow(LIMIT)
  })
})

/** Constants of DLPack 1.1, written independently of the code under test. */
const DLPACK_CODES: Partial<Record<Dtype, number>> = {
  int2: 0,
  int4: 0,
  int8: 0,
  int16: 0,
  int32: 0,
  int64: 0,
  uint2: 1,
  uint4: 1,
  uint8: 1,
  uint16: 1,
  uint32: 1,
  uint64: 1,
  float16: 2,
  float32: 2,
  float64: 2,
  bfloat16: 4,
  complex64: 5,
  complex128: 5,
  bool: 6,
  float8_e4m3fn: 10,
  float8_e4m3fnuz: 11,
  float8_e5m2: 12,
  float8_e5m2fnuz: 13,
  float8_e8m0fnu: 14,
  float6_e2m3fn: 15,
  float6_e3m2fn: 16,
  float4_e2m1fn: 17,
}
