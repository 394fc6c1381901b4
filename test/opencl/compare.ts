/** Runs a plan on the CPU and on the first OpenCL device, and compares every byte. */
import { devices } from '../../lib/device/devices.js'
import type { ElementStep } from '../../lib/dtype/cast_step.js'
import type { Dtype } from '../../lib/dtype/dtypes.js'
import type { Layout } from '../../lib/layout/layout.js'
import { joinLayouts, type PlacedLayout } from '../../lib/layout/plan.js'
import type { NativeDeviceSettings } from '../../lib/native/types.js'

export const hasDevice = devices().length > 0
if (!hasDevice) console.log('skipped: there is no OpenCL device (Debian: pocl-opencl-icd is one for the CPU)')

export interface Comparison {
  readonly dtype: Dtype
  readonly shape: readonly number[]
  readonly from: string | Layout | PlacedLayout
  readonly to: string | Layout | PlacedLayout
  readonly casts?: readonly ElementStep[]
  /** Source bytes; random bytes by default. */
  readonly source?: Uint8Array<ArrayBuffer>
  readonly settings?: NativeDeviceSettings
  /** Memory is copied to the device and back, in three slices, each of up to three windows of the source. */
  readonly isCopied?: boolean
}

/** @throws Error that names the first differing byte */
export async function compareWithCpu({
  dtype,
  shape,
  from,
  to,
  casts = [],
  source: given,
  settings,
  isCopied = false,
}: Comparison): Promise<void> {
  const { plan } = joinLayouts({ dtype, shape, from, to, ...(casts.length > 0 && { casts }) })
  const source = given ?? noise(plan.sourceBytes)
  const wanted = new Uint8Array(plan.destinationBytes).fill(0xaa)
  const found = new Uint8Array(plan.destinationBytes).fill(0x55)
  plan.runSync(source, wanted)
  await plan.runOnDevice({
    ...{ device: 0, source, target: found, start: 0, end: plan.destinationBytes },
    ...settings,
    ...(isCopied && { inPlace: false, maxBytes: Math.ceil(Math.max(source.length, found.length) / 3) }),
  })
  if (Buffer.compare(wanted, found) === 0) return
  const at = wanted.findIndex((byte, i) => byte !== found[i])
  const what = `${nameOf(from)} to ${nameOf(to)}, ${dtype} [${shape}], ${JSON.stringify({ from, to, settings, isCopied })}`
  throw new Error(`${what}: byte ${at} is ${found[at]} on the device and ${wanted[at]} on the CPU`)
}

/** The longest buffer so far. */
let made = new Uint8Array(0)

/** Deterministic bytes without a pattern that a wrong order could preserve. */
export function noise(size: number): Uint8Array<ArrayBuffer> {
  if (made.length < size) made = makeNoise(Math.max(size, 2 ** 20))
  return made.slice(0, size)
}

function makeNoise(size: number): Uint8Array<ArrayBuffer> {
  const bytes = new Uint8Array(size)
  let state = 1
  for (let i = 0; i < size; i++) {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0
    bytes[i] = state >>> 24
  }
  return bytes
}

function nameOf(side: string | Layout | PlacedLayout): string {
  if (typeof side === 'string') return side
  return 'storage' in side ? side.name : nameOf(side.layout)
}
