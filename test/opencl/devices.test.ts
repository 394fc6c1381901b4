/** Devices in the public calls and on the command line, with and without an OpenCL library. */
import { spawnSync } from 'node:child_process'
import { readFileSync, writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { beforeEach, describe, expect, it } from 'vitest'
import { MemorySource } from '../../lib/bytes/memory.js'
import { type DeviceChoice, devices } from '../../lib/device/devices.js'
import { onDevice } from '../../lib/device/on_device.js'
import { planReorder } from '../../lib/layout/plan.js'
import { open } from '../../lib/pipeline/open.js'
import { save, serialize } from '../../lib/pipeline/save.js'
import { asTensor } from '../../lib/tensor/adapters.js'
import { cast } from '../../lib/tensor/cast.js'
import { StoredTensor } from '../../lib/tensor/dense.js'
import { materialize } from '../../lib/tensor/materialize.js'
import { reorder } from '../../lib/tensor/reorder.js'
import { slice } from '../../lib/tensor/slice.js'
import type { DenseTensor } from '../../lib/tensor/tensor.js'
import { runCli, runJson } from '../cli/run_cli.js'
import { temporaryFolder } from '../cli/temporary_folder.js'
import { ADDON } from '../native/run_script.js'
import { hasDevice, noise } from './compare.js'

const MAIN = fileURLToPath(new URL('../../dist/cli/main.js', import.meta.url))
const inFolder = temporaryFolder()
const SHAPE = [2, 19, 35, 33]

function image(bytes = noise(2 * 19 * 35 * 33 * 4)): DenseTensor {
  return new StoredTensor({ source: new MemorySource(bytes), start: 0, dtype: 'float32', shape: SHAPE })
}

describe('the choice of a device', () => {
  it.each(['', 'cpu', 'opencl:', 'opencl:-1', 'opencl:1.5', 7, null])('rejects %j', (choice) => {
    expect(() => onDevice(image(), choice as DeviceChoice)).toThrow(
      expect.objectContaining({ code: 'ERR_ARGUMENT' }),
    )
  })

  it('lists the available devices when the chosen one does not exist', () => {
    expect(() => onDevice(image(), 'opencl:999')).toThrow(
      expect.objectContaining({
        code: 'ERR_NO_DEVICE',
        message: expect.stringMatching(/^There is no (device opencl:999|OpenCL device)/),
      }),
    )
  })
})

describe('without an OpenCL library', () => {
  const env = { ...process.env, TILEWORK_OPENCL_LIBRARY: 'none' }

  it.each([
    ['none', 'TILEWORK_OPENCL_LIBRARY is "none"'],
    ['/nowhere/libOpenCL.so.1', 'cannot load /nowhere/libOpenCL.so.1'],
    [ADDON, `${ADDON} has no cl`],
  ])('there are no devices with %s', (library, reason) => {
    const script = `process.stdout.write(JSON.stringify(require(${JSON.stringify(ADDON)}).devices()))`
    const own = { ...env, TILEWORK_OPENCL_LIBRARY: library }
    const { stdout } = spawnSync(process.execPath, ['-e', script], { encoding: 'utf8', env: own })
    const found = JSON.parse(stdout) as { devices: unknown[]; reason: string }
    expect(found.devices).toEqual([])
    expect(found.reason).toContain(reason)
  })

  it('a run on a device is an error with advice, before any write', async () => {
    const input = inFolder('in.npy')
    const output = inFolder('none.npy')
    await save(input, image())
    const args = ['convert', input, output, '--layout', 'byxf', '--device', 'opencl']
    const { status, stderr } = spawnSync(process.execPath, [MAIN, ...args], { encoding: 'utf8', env })
    expect(status).toBe(64)
    expect(stderr).toMatch(/^tilework: ERR_NO_DEVICE: .*install the OpenCL driver/)
    expect(() => readFileSync(output)).toThrow('ENOENT')
  })

  it('the list of devices is empty', () => {
    const run = (...args: string[]) =>
      spawnSync(process.execPath, [MAIN, 'devices', ...args], { encoding: 'utf8', env })
    expect(run('--json')).toMatchObject({ status: 0, stdout: '{"devices":[]}\n' })
    expect(run()).toMatchObject({ status: 0, stdout: '', stderr: 'tilework: no OpenCL device found.\n' })
  })
})

describe.skipIf(!hasDevice)('on an OpenCL device', () => {
  beforeEach(() => {
    for (const name of ['BUFFER_BYTES', 'IN_PLACE', 'BUILD_OPTIONS', 'LOSE_AFTER'])
      delete process.env[`TILEWORK_OPENCL_${name}`]
  })

  it('devices() and "tilework devices" list it', async () => {
    const [first] = devices()
    expect(first).toMatchObject({ id: 'opencl:0', name: expect.any(String), memory: expect.any(Number) })
    expect(first!.memory).toBeGreaterThan(0)
    expect(await runJson(['devices'])).toEqual({ devices: devices() })
    expect((await runCli(['devices'])).stdout).toContain('opencl:0')
  })

  it('planReorder(…).run accepts every form of the device option', async () => {
    const plan = planReorder({ dtype: 'float32', shape: SHAPE, from: 'bfyx', to: 'b_fs_yx_fsv16' })
    const source = noise(plan.sourceBytes)
    const wanted = new Uint8Array(plan.destinationBytes)
    plan.runSync(source, wanted)
    for (const device of ['opencl', 'opencl:0', devices()[0]!]) {
      const found = new Uint8Array(plan.destinationBytes).fill(1)
      await plan.run(source, found, { device })
      expect(Buffer.compare(found, wanted)).toBe(0)
    }
  })

  it('checks buffers as on the CPU', async () => {
    const plan = planReorder({ dtype: 'uint8', shape: [1, 2, 3, 4], from: 'bfyx', to: 'byxf' })
    const bytes = new Uint8Array(48)
    const run = (from: Uint8Array, to: Uint8Array) => plan.run(from, to, { device: 'opencl' })
    await expect(run(bytes.subarray(0, 23), bytes.subarray(24))).rejects.toMatchObject({
      code: 'ERR_ARGUMENT',
    })
    await expect(run(bytes.subarray(0, 24), bytes.subarray(12, 36))).rejects.toThrow('overlap')
  })

  it('materialize, bytes, toTypedArray and later operations run on the device', async () => {
    const lazy = slice(cast(reorder(image(), 'byxf'), 'float16'), [{}, { start: 1, end: 12 }])
    const there = onDevice(lazy, 'opencl')
    const wanted = Buffer.from(await lazy.bytes())
    expect(wanted.equals(await there.bytes())).toBe(true)
    expect(wanted.equals(there.bytesSync())).toBe(true)
    expect(wanted.equals(await (await materialize(lazy, { device: 'opencl' })).bytes())).toBe(true)
    expect(await there.toTypedArray()).toEqual(await lazy.toTypedArray())
    const further = await reorder(there, 'b_fs_yx_fsv4').bytes()
    expect(Buffer.compare(further, await reorder(lazy, 'b_fs_yx_fsv4').bytes())).toBe(0)
  })

  it('returns tensors that need no computation unchanged', () => {
    const plain = image()
    expect(onDevice(plain, 'opencl')).toBe(plain)
  })

  it('reads user sources by ranges', async () => {
    const bytes = noise(2 * 19 * 35 * 33 * 4)
    const remote = asTensor({ dtype: 'float32', shape: SHAPE, bytes: async () => bytes })
    const found = await (await materialize(reorder(remote, 'byxf'), { device: 'opencl' })).bytes()
    expect(Buffer.compare(found, await reorder(image(bytes), 'byxf').bytes())).toBe(0)
  })

  it.each(['map', 'read'] as const)('files are converted, opened with mode %s', async (mode) => {
    const input = inFolder(`in_${mode}.npy`)
    await save(input, image())
    const file = await open(input, { mode })
    const lazy = reorder(cast(file.tensors.at(0) as DenseTensor, 'float16'), 'b_fs_yx_fsv16')
    const wanted = await serialize(lazy, { format: 'npy' })
    for (const [buffer, inPlace] of [
      ['', ''],
      ['16384', ''],
      ['16384', '0'],
      ['', '0'],
    ] as const) {
      if (buffer) process.env.TILEWORK_OPENCL_BUFFER_BYTES = buffer
      if (inPlace) process.env.TILEWORK_OPENCL_IN_PLACE = inPlace
      const output = inFolder('out.npy')
      await save(output, onDevice(lazy, 'opencl'))
      expect(Buffer.compare(readFileSync(output), wanted)).toBe(0)
      const chunks: Uint8Array[] = []
      const stream = new WritableStream<Uint8Array>({ write: (chunk) => void chunks.push(chunk.slice()) })
      await save(stream, onDevice(lazy, 'opencl'), { format: 'npy' })
      expect(Buffer.compare(Buffer.concat(chunks), wanted)).toBe(0)
    }
    file.close()
  })

  it('convert --device writes what convert writes', async () => {
    const [input, one, other] = [inFolder('in.npy'), inFolder('one.npy'), inFolder('other.npy')]
    await save(input, image())
    const args = ['--layout', 'b_fs_yx_fsv16', '--dtype', 'f16']
    expect((await runCli(['convert', input, one, ...args])).code).toBe(0)
    expect((await runCli(['convert', input, other, ...args, '--device', 'opencl'])).code).toBe(0)
    expect(readFileSync(one).equals(readFileSync(other))).toBe(true)
  })

  it('a kernel that cannot be built is an error with the log of the compiler', async () => {
    process.env.TILEWORK_OPENCL_BUILD_OPTIONS = '-Dreorder=1'
    const failed = materialize(reorder(image(), 'byxf'), { device: 'opencl' })
    await expect(failed).rejects.toMatchObject({
      code: 'ERR_DEVICE_BUILD',
      message: expect.stringMatching(/-Dreorder=1[\s\S]*error/),
    })
    delete process.env.TILEWORK_OPENCL_BUILD_OPTIONS
    await materialize(reorder(image(), 'byxf'), { device: 'opencl' })
  })

  it('losing a device during a run is an error for all concurrent runs; the next run works', async () => {
    const plan = planReorder({ dtype: 'float32', shape: SHAPE, from: 'bfyx', to: 'byxf' })
    const source = noise(plan.sourceBytes)
    const wanted = new Uint8Array(plan.destinationBytes)
    plan.runSync(source, wanted)
    process.env.TILEWORK_OPENCL_BUFFER_BYTES = '16384'
    const run = () => {
      const found = new Uint8Array(plan.destinationBytes)
      return plan.run(source, found, { device: 'opencl' }).then(() => Buffer.compare(found, wanted))
    }
    const before = run()
    process.env.TILEWORK_OPENCL_LOSE_AFTER = '2'
    const lost = run()
    delete process.env.TILEWORK_OPENCL_LOSE_AFTER
    const beside = run()
    await expect(lost).rejects.toMatchObject({
      code: 'ERR_DEVICE_LOST',
      message: expect.stringContaining('CL_DEVICE_NOT_AVAILABLE'),
    })
    expect(await Promise.all([before, beside, run()])).toEqual([0, 0, 0])
  })

  it('a failed save keeps the old file', async () => {
    const [input, output] = [inFolder('in.npy'), inFolder('kept.npy')]
    await save(input, image())
    writeFileSync(output, 'old')
    process.env.TILEWORK_OPENCL_BUILD_OPTIONS = '-Dreorder=1'
    const file = await open(input)
    const lazy = onDevice(reorder(file.tensors.at(0) as DenseTensor, 'byxf'), 'opencl')
    await expect(save(output, lazy)).rejects.toMatchObject({ code: 'ERR_DEVICE_BUILD' })
    expect(readFileSync(output, 'utf8')).toBe('old')
    file.close()
  })

  it('an abort stops a run between two slices', async () => {
    const shape = [1, 64, 512, 512]
    const plan = planReorder({ dtype: 'float32', shape, from: 'bfyx', to: 'byxf' })
    process.env.TILEWORK_OPENCL_BUFFER_BYTES = '65536'
    process.env.TILEWORK_OPENCL_IN_PLACE = '0'
    const [source, target] = [new Uint8Array(plan.sourceBytes).fill(7), new Uint8Array(plan.destinationBytes)]
    const abort = new AbortController()
    const run = plan.run(source, target, { device: 'opencl', signal: abort.signal })
    setTimeout(() => abort.abort(), 30)
    await expect(run).rejects.toMatchObject({ code: 'ERR_ABORTED' })
    // The last slices were never started.
    expect(target.at(-1)).toBe(0)
  })

  it('concurrent runs are independent', async () => {
    const plan = planReorder({ dtype: 'uint8', shape: [4, 64, 64, 64], from: 'bfyx', to: 'b_fs_yx_fsv16' })
    process.env.TILEWORK_OPENCL_IN_PLACE = '0'
    const runs = Array.from({ length: 12 }, async (_, i) => {
      const source = noise(plan.sourceBytes).map((byte) => byte ^ i)
      const [found, wanted] = [new Uint8Array(plan.destinationBytes), new Uint8Array(plan.destinationBytes)]
      await plan.run(source, found, { device: 'opencl' })
      plan.runSync(source, wanted)
      return Buffer.compare(found, wanted)
    })
    expect(await Promise.all(runs)).toEqual(Array(12).fill(0))
  })
})
