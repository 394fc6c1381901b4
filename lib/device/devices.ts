/** Lists OpenCL devices and finds one by its id. The OpenCL library is loaded on the first call. */
import { systemError } from '../bytes/system_error.js'
import { TileworkError } from '../errors.js'
import { native } from '../native/addon.js'
import { valueText } from '../value_text.js'

/** A device that reorders and casts can run on. */
export interface Device {
  /** The value for `device` options: `opencl:0` and so on, in the order of OpenCL's platforms. */
  readonly id: string
  readonly platform: string
  readonly name: string
  readonly type: 'gpu' | 'cpu' | 'accelerator' | 'other'
  /** As the driver reports it: `OpenCL 3.0 …`. */
  readonly version: string
  readonly driver: string
  /** Bytes of the device's memory. */
  readonly memory: number
  /** Bytes of the largest single buffer. */
  readonly largestBuffer: number
  /** True when host and device share memory; it is then used in place. */
  readonly unifiedMemory: boolean
}

/** A device, its `id`, or `opencl`: the first GPU, or the first device where there is no GPU. */
export type DeviceChoice = string | Device

const ID = /^opencl(?::(\d{1,4}))?$/

/** The OpenCL devices of this machine; empty without devices or without an OpenCL library. */
export function devices(): Device[] {
  return native()
    .devices()
    .devices.map((device, number) => ({ id: `opencl:${number}`, ...device }))
}

/**
 * The chosen device and its index for the addon.
 *
 * @throws TileworkError ERR_ARGUMENT for a malformed choice, ERR_NO_DEVICE with advice for a missing device
 */
export function findDevice(choice: DeviceChoice): { readonly number: number; readonly device: Device } {
  const wanted = numberOf(choice)
  const { devices: found, reason } = systemError.wrap('OpenCL', () => native().devices())
  const gpu = found.findIndex(({ type }) => type === 'gpu')
  const number = wanted ?? Math.max(gpu, 0)
  const device = found[number]
  if (device) return { number, device: { id: `opencl:${number}`, ...device } }
  const what =
    found.length > 0
      ? `There is no device opencl:${number}; there are opencl:0 to opencl:${found.length - 1}`
      : `There is no OpenCL device: ${reason || 'the OpenCL library has no driver for one'}`
  const advice =
    found.length > 0
      ? '"tilework devices" lists them'
      : 'install the OpenCL driver of the graphics card, or PoCL for the CPU (Debian: pocl-opencl-icd), or omit the device'
  throw new TileworkError('ERR_NO_DEVICE', `${what}; ${advice}.`)
}

/** The index in the id; undefined for `opencl`, any device. */
function numberOf(choice: DeviceChoice): number | undefined {
  const id = typeof choice === 'object' && choice !== null ? choice.id : choice
  const match = typeof id === 'string' ? ID.exec(id) : null
  if (!match) {
    throw new TileworkError(
      'ERR_ARGUMENT',
      `device is ${valueText(id)}; it must be "opencl", "opencl:0" and so on, or one of devices().`,
    )
  }
  return match[1] === undefined ? undefined : Number(match[1])
}
