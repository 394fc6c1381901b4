/** Turns a lazy tensor, or a tensor of a file, into one that owns its memory. */
import { readInto } from '../bytes/fill_memory.js'
import { MemorySource } from '../bytes/memory.js'
import { bytesOfView } from '../bytes/view_bytes.js'
import { unfilledBytes } from '../bytes/view_limit.js'
import { checkOptions, readInput } from '../caller_input.js'
import type { DeviceChoice } from '../device/devices.js'
import { onDevice } from '../device/on_device.js'
import type { Dtype } from '../dtype/dtypes.js'
import { TileworkError } from '../errors.js'
import { valueText } from '../value_text.js'
import { checkDense } from './check_tensor.js'
import { asStored, StoredTensor } from './dense.js'
import type { DenseTensor } from './tensor.js'

/** How `materialize` computes. */
export interface MaterializeOptions {
  /** One of `devices()`, or its id; by default the device of `onDevice`, else the CPU. */
  readonly device?: DeviceChoice
  /**
   * Memory of the caller that gets the storage, `tensor.storage.byteLength` bytes: a typed array of any class. The result shares
   * it: a write changes its elements, and once it is transferred, reads are ERR_FILE_CHANGED. By default new memory.
   */
  readonly out?: ArrayBufferView
}

/**
 * The tensor with its storage computed once and held in its own memory; it outlives the file that it came from.
 *
 * @throws TileworkError ERR_ARGUMENT for an `out` of another length, ERR_VIEW_TOO_LARGE, ERR_LIMIT when allocation fails, what `bytes` throws, and with a device
 * ERR_NO_DEVICE, ERR_DEVICE_MEMORY, ERR_DEVICE_BUILD, ERR_DEVICE_LOST
 */
export async function materialize<D extends Dtype>(
  tensor: DenseTensor<D>,
  options?: MaterializeOptions,
): Promise<DenseTensor<D>>
export async function materialize(
  tensor: DenseTensor,
  options: MaterializeOptions = {},
): Promise<DenseTensor> {
  const dense = checkDense(tensor, 'materialize')
  checkOptions(options, 'materialize', ['device', 'out'])
  const { device, out } = readInput('The options of materialize', () => ({
    device: options.device,
    out: options.out,
  }))
  const stored = asStored(device === undefined ? dense : onDevice(dense, device))
  const { storage, name, dtype, shape, metadata, doc, quantization } = stored
  const bytes = out === undefined ? unfilledBytes(storage.byteLength) : outBytes(out, storage.byteLength)
  if (out === undefined) await readInto(stored.source, stored.start, bytes)
  else await stored.copyTo(bytes)
  return new StoredTensor({
    source: new MemorySource(bytes),
    start: 0,
    name,
    dtype,
    shape,
    metadata,
    layout: storage.layout,
    ...(doc !== undefined && { doc }),
    ...(quantization && { quantization }),
    lower: storage.lower,
    upper: storage.upper,
  })
}

function outBytes(out: unknown, byteLength: number): Uint8Array {
  if (!ArrayBuffer.isView(out)) {
    throw new TileworkError('ERR_ARGUMENT', `out is ${valueText(out)}; it must be a typed array.`)
  }
  const bytes = bytesOfView(out, 'out')
  if (bytes.byteLength === byteLength) return bytes
  const message = `out has ${bytes.byteLength} bytes; the storage has ${byteLength}.`
  throw new TileworkError('ERR_ARGUMENT', message)
}
