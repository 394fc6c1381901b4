/** Lazy tensors that are computed on a device. */
import type { Dtype } from '../dtype/dtypes.js'
import { checkDense } from '../tensor/check_tensor.js'
import type { StoredTensor } from '../tensor/dense.js'
import { FusedTensor } from '../tensor/fused.js'
import { JoinedTensor } from '../tensor/joined.js'
import type { DenseTensor } from '../tensor/tensor.js'
import { type DeviceChoice, findDevice } from './devices.js'

/**
 * The tensor, computed on a device by every asynchronous read: `bytes`, `materialize`, `save`. Results of `reorder`, `cast` and
 * `slice` of it are computed there too. Synchronous reads compute on the CPU, with the same result. A tensor that needs no
 * computation is returned unchanged.
 *
 * @param tensor - a dense tensor in any layout
 * @throws TileworkError ERR_NO_DEVICE with advice for a missing device, ERR_ARGUMENT
 */
export function onDevice<D extends Dtype>(tensor: DenseTensor<D>, device: DeviceChoice): DenseTensor<D>
export function onDevice(tensor: DenseTensor, device: DeviceChoice): DenseTensor {
  const dense = checkDense(tensor, 'onDevice')
  const { id } = findDevice(device).device
  return withDevice(dense, id)
}

function withDevice<T extends DenseTensor>(tensor: T, device: string): T | StoredTensor {
  if (tensor instanceof JoinedTensor) return tensor.mapParts((part) => withDevice(part, device)) ?? tensor
  return tensor instanceof FusedTensor ? new FusedTensor({ ...tensor.recipe, device }) : tensor
}
