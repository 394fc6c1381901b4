/**
 * Reorders on an OpenCL device. Each case runs twice: with its data on the device, compared with the device's own copy
 * (clEnqueueCopyBuffer) of as many bytes; and from a file to memory, compared with the slower of reading the file from the
 * page cache and the bus transfer in the same run.
 */
import { closeSync, mkdtempSync, openSync, readSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { asLayout, asTensor, devices, onDevice, open, parseLayout, reorder, save } from '../dist/index.js'
import { importInternal } from '../scripts/internals.mjs'
import { bestOfRounds, report } from './rounds.mjs'

const { joinLayouts } = await importInternal('layout/plan')

const PHOTOS = [64, 3, 224, 224]
const ACTIVATIONS = [16, 64, 112, 112]
const WEIGHTS = [512, 512, 3, 3]
const DENSE_WEIGHTS = [4096, 4096, 1, 1]

/** The most used pairs of layouts, with their rank. */
const CASES = [
  [1, 'float32', ACTIVATIONS, 'bfyx', 'byxf'],
  [1, 'float32', ACTIVATIONS, 'byxf', 'bfyx'],
  [1, 'uint8', PHOTOS, 'byxf', 'bfyx'],
  [2, 'float32', ACTIVATIONS, 'bfyx', 'b_fs_yx_fsv16'],
  [2, 'float16', ACTIVATIONS, 'bfyx', 'b_fs_yx_fsv16'],
  [2, 'float32', ACTIVATIONS, 'b_fs_yx_fsv16', 'bfyx'],
  [2, 'uint8', ACTIVATIONS, 'bfyx', 'b_fs_yx_fsv32'],
  [2, 'uint8', ACTIVATIONS, 'bfyx', 'b_fs_yx_fsv4'],
  [3, 'float16', ACTIVATIONS, 'byxf', 'b_fs_yx_fsv16'],
  [4, 'float32', WEIGHTS, 'oiyx', 'os_is_yx_isv16_osv16'],
  [4, 'float16', WEIGHTS, 'oiyx', 'os_iyx_osv16'],
  [4, 'float16', WEIGHTS, 'oiyx', 'os_is_yx_osv16_isv16'],
  [5, 'uint8', WEIGHTS, 'oiyx', 'os_is_yx_osv16_isv4'],
  [5, 'uint8', WEIGHTS, 'oiyx', 'os_is_yx_isa8_osv16_isv4'],
  [6, 'uint4', DENSE_WEIGHTS, 'oiyx', 'os_is_yx_osv32_isv2'],
]

export function addOpencl(program) {
  program
    .command('opencl')
    .description("reorders on an OpenCL device, compared with the device's own copy")
    .option('--device <number>', 'index of the device in "tilework devices"', Number, 0)
    .option('--rounds <n>', 'number of rounds; the best counts', Number, 10)
    .option('--case <text>', 'only cases whose name contains this text')
    .option('--scale <n>', 'factor for the first dimension of each tensor', Number, 1)
    .option('--json', 'print JSON')
    .action(measure)
}

async function measure({ device: number, rounds, case: wanted = '', scale, json }) {
  const device = devices()[number]
  if (!device) {
    console.log(`skipped: OpenCL device ${number} does not exist`)
    return
  }
  if (!json) console.log(`${device.name} (${device.platform}, ${device.version}, driver ${device.driver})`)
  const rows = []
  for (const [rank, dtype, [first, ...shape], from, to] of CASES) {
    const name = `${dtype} ${from} > ${to}`
    if (!name.includes(wanted)) continue
    const scaled = [first * scale, ...shape]
    const description = { dtype, shape: scaled, from, to }
    const { bus, ...there } = onTheDevice(description, number, rounds)
    const ends = dtype === 'uint4' ? {} : await fromFile(bus, description, device, rounds)
    rows.push({ rank, case: name, shape: scaled.join('x'), ...there, ...ends })
  }
  report(json ? rows.map((row) => ({ device: device.name, ...row })) : rows, { json })
}

/** GB/s of bytes read and written. */
function onTheDevice(description, device, rounds) {
  const { plan } = joinLayouts(description)
  const bytes = plan.sourceBytes + plan.destinationBytes
  const times = plan.timeOnDevice({ device, rounds, ownKernelBytes: 0 })
  return {
    form: times.form,
    kernelGBs: rate(bytes, times.kernel),
    copyGBs: rate(bytes, times.copy),
    ofCopy: ratio(times.copy / times.kernel),
    // Upload and download may overlap, so the slower one bounds a stream.
    bus: Math.max(times.upload, times.download),
  }
}

/** GB/s of source bytes, from a file in the page cache to memory. */
async function fromFile(bus, { dtype, shape, from, to }, { id, unifiedMemory }, rounds) {
  const folder = mkdtempSync(join(tmpdir(), 'tilework-bench-'))
  try {
    const path = join(folder, 'in.npy')
    const { byteLength, elements } = parseLayout(from).storage(shape, { dtype })
    const bytes = new Uint8Array(byteLength).fill(1)
    await save(path, asTensor({ dtype, shape: [elements], bytes: () => bytes }))
    const file = await open(path)
    const lazy = onDevice(reorder(asLayout(file.tensors.at(0), from, shape), to), id)
    const target = new Uint8Array(lazy.storage.byteLength)
    const descriptor = openSync(path, 'r')
    const best = await bestOfRounds(
      { device: () => lazy.copyTo(target), disk: () => void readSync(descriptor, bytes, 0, byteLength, 0) },
      rounds,
    )
    file.close()
    closeSync(descriptor)
    const bound = Math.max(best.disk, unifiedMemory ? 0 : bus)
    return {
      endToEndGBs: rate(byteLength, best.device),
      boundGBs: rate(byteLength, bound),
      ofBound: ratio(bound / best.device),
    }
  } finally {
    rmSync(folder, { recursive: true })
  }
}

function rate(bytes, seconds) {
  return Number((bytes / seconds / 1e9).toFixed(2))
}

function ratio(value) {
  return Number(value.toFixed(2))
}
