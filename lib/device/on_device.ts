/** Lazy tensors that are computed on a device. */
import type { Dtype } from '../dtype/dtypes.js'
import { checkDense } from '../tensor/check_tensor.js'
import { FusedTensor } from '../tensor/fused.js'
import type { DenseTensor } from '../tensor/tensor.js'
import { type DeviceChoice, findDevice } from './devices.js'

/**
 * The tensor, computed on a device wherever its bytes are asked for: by `bytes`, `materialize`, `save`. What `reorder`,
 * `cast` and `slice` make of it is computed there too. A tensor of which nothing is to be computed is given back as it
 * is, and what is asked for synchronously is computed by the CPU, with the same result.
 *
 * @param tensor - a dense tensor in any layout
 * @throws TileworkError ERR_NO_DEVICE with advice where the device is not there, ERR_ARGUMENT
 */
export function onDevice<D extends Dtype>(tensor: DenseTensor<D>, device: DeviceChoice): DenseTensor<D>
export function onDevice(tensor: DenseTensor, device: DeviceChoice): DenseTensor {
  const dense = checkDense(tensor, 'onDevice')
  const { id } = findDevice(device).device
  return dense instanceof FusedTensor ? new FusedTensor({ ...dense.recipe, device: id }) : dense
}
