/** A plan that runs on a device, with the methods of a plan that runs on the CPU. */
import type {
  NativeDeviceSettings,
  NativeInputFile,
  NativeOutputFile,
  NativeReorderPlan,
  NativeSparseBuffer,
} from '../native/types.js'
import { type DeviceChoice, findDevice } from './devices.js'

/** The methods that compute, of a plan on the CPU or on a device. A device has no synchronous run. */
export type PlanRunner = Pick<NativeReorderPlan, 'run' | 'runFile' | 'runToFile'> &
  Partial<Pick<NativeReorderPlan, 'runFileSync'>>

/** Larger ranges are read from the file: a view of the mapping would be too large on some versions of Node. */
const MAX_VIEW_BYTES = 2 ** 31

export class DevicePlan implements PlanRunner {
  readonly #plan: NativeReorderPlan
  readonly #device: number
  readonly #sharesMemory: boolean

  /** @throws TileworkError ERR_ARGUMENT, ERR_NO_DEVICE */
  constructor(plan: NativeReorderPlan, choice: DeviceChoice) {
    const { number, device } = findDevice(choice)
    this.#plan = plan
    this.#device = number
    this.#sharesMemory = device.unifiedMemory
  }

  run(
    source: Uint8Array | NativeSparseBuffer,
    target: Uint8Array,
    start: number,
    end: number,
    cancel?: Int32Array,
  ): Promise<void> {
    return this.#start({ source, target, start, end }, cancel)
  }

  runFile(
    file: NativeInputFile,
    offset: number,
    target: Uint8Array,
    start: number,
    end: number,
    cancel?: Int32Array,
  ): Promise<void> {
    return this.#start({ ...this.#sourceIn(file, offset), target, start, end }, cancel)
  }

  runToFile(
    file: NativeInputFile,
    offset: number,
    target: NativeOutputFile,
    start: number,
    end: number,
    position: number,
    cancel?: Int32Array,
  ): Promise<void> {
    return this.#start({ ...this.#sourceIn(file, offset), target, start, end, position }, cancel)
  }

  /** The mapped pages where the device can use them in place; otherwise the file. */
  #sourceIn(
    file: NativeInputFile,
    offset: number,
  ): { source: Uint8Array } | { source: NativeInputFile; offset: number } {
    const { sourceBytes } = this.#plan
    const usesMap = this.#sharesMemory && file.isMapped && sourceBytes <= MAX_VIEW_BYTES
    return usesMap ? { source: file.view(offset, offset + sourceBytes) } : { source: file, offset }
  }

  #start(
    work: Omit<Parameters<NativeReorderPlan['runOnDevice']>[0], 'device'>,
    cancel: Int32Array | undefined,
  ): Promise<void> {
    const device = this.#device
    return this.#plan.runOnDevice({ device, ...settings(), ...work, ...(cancel && { cancel }) })
  }
}

/** Overrides for tests and for faulty drivers; docs/opencl.md lists the variables. */
function settings(): NativeDeviceSettings {
  const {
    TILEWORK_OPENCL_BUFFER_BYTES,
    TILEWORK_OPENCL_IN_PLACE,
    TILEWORK_OPENCL_BUILD_OPTIONS,
    TILEWORK_OPENCL_LOSE_AFTER,
  } = process.env
  const maxBytes = Number(TILEWORK_OPENCL_BUFFER_BYTES)
  const loseAfter = Number(TILEWORK_OPENCL_LOSE_AFTER)
  return {
    ...(Number.isSafeInteger(maxBytes) && maxBytes > 0 && { maxBytes }),
    ...(TILEWORK_OPENCL_IN_PLACE === '0' && { inPlace: false }),
    ...(TILEWORK_OPENCL_LOSE_AFTER && Number.isSafeInteger(loseAfter) && { loseAfter }),
    ...(TILEWORK_OPENCL_BUILD_OPTIONS && { buildOptions: TILEWORK_OPENCL_BUILD_OPTIONS }),
  }
}
