/**
 * DLPack: exchanges tensors with other native libraries in memory, without a copy where the owner allows it. In JavaScript a
 * capsule object carries the tensor; other addons recognise it by the type tag in `native/dlpack/capsule.h`. Specification:
 * DLPack 1.1.
 */
import { MemorySource } from '../bytes/memory.js'
import { systemError } from '../bytes/system_error.js'
import { checkName, checkOptions, readInput } from '../caller_input.js'
import { TileworkError } from '../errors.js'
import { native } from '../native/addon.js'
import type { DlpackCapsule } from '../native/types.js'
import { valueText } from '../value_text.js'
import { checkDense } from './check_tensor.js'
import { StoredTensor } from './dense.js'
import { isPlain } from './plain_storage.js'
import type { DenseTensor } from './tensor.js'

export interface ToDlpackOptions {
  /** For libraries before DLPack 1.0, which know no read-only memory: always a copy. Default false. */
  readonly legacy?: boolean
}

/**
 * A capsule with the tensor. A tensor of a mapped file shares the mapping, marked read-only, which stays mapped while the other
 * library holds it, also after `close()`. Memory of JavaScript is copied, since another thread may release it last.
 *
 * @throws TileworkError ERR_ARGUMENT; ERR_UNSUPPORTED for a tensor that is not row-major or is padded; what `bytes` throws
 */
export async function toDlpack(tensor: DenseTensor, options: ToDlpackOptions = {}): Promise<DlpackCapsule> {
  const checked = checkDense(tensor, 'toDlpack')
  checkOptions(options, 'toDlpack', ['legacy'])
  const legacy = readInput('The options of toDlpack', () => options.legacy === true)
  const { dtype, shape, storage } = checked
  if (!isPlain(storage)) {
    const message = `tensor "${checked.name}" has the layout ${storage.layout}; DLPack holds unpadded row_major tensors, so reorder it first.`
    throw new TileworkError('ERR_UNSUPPORTED', message)
  }
  const bytes = await checked.bytes()
  return systemError.wrap('toDlpack', () => native().exportDlpack(bytes, dtype, shape, legacy))
}

export interface FromDlpackOptions {
  readonly name?: string
  /**
   * Largest size in bytes of a tensor that repeats elements, as a stride of 0 does: its size is unrelated to the memory behind
   * it. Default 64 MiB.
   */
  readonly maxBytes?: number
}

/** Enough for the broadcast operands of one operator; a hostile capsule may declare any size. */
const DEFAULT_REPEATED_BYTES = 64 * 1024 * 1024

/**
 * Takes the tensor out of a capsule, which is empty afterwards. Row-major memory without gaps is shared, and the exporter's
 * deleter runs after the last use of the bytes. Other tensors are copied before the call returns, because their owner may
 * write to the memory afterwards.
 *
 * @param capsule - from `toDlpack`, or from another addon that makes such capsules
 * @throws TileworkError ERR_ARGUMENT for an object that is not a capsule or is empty, ERR_UNSUPPORTED for another device,
 * version or element type, ERR_RANK, ERR_OVERFLOW, ERR_LIMIT beyond `maxBytes`; the capsule then keeps its tensor
 */
export function fromDlpack(capsule: DlpackCapsule, options: FromDlpackOptions = {}): DenseTensor {
  checkOptions(options, 'fromDlpack', ['name', 'maxBytes'])
  const name = readInput('The options of fromDlpack', () => checkName(options.name ?? ''))
  const maxBytes = readInput('The options of fromDlpack', () => options.maxBytes ?? DEFAULT_REPEATED_BYTES)
  if (!Number.isSafeInteger(maxBytes) || maxBytes < 0) {
    const message = `maxBytes is ${valueText(maxBytes)}; it must be a whole number of bytes.`
    throw new TileworkError('ERR_ARGUMENT', message)
  }
  if (typeof capsule !== 'object' || capsule === null) {
    throw new TileworkError(
      'ERR_ARGUMENT',
      `capsule is ${valueText(capsule)}; fromDlpack takes a DLPack capsule.`,
    )
  }
  const { bytes, dtype, shape } = systemError.wrap('fromDlpack', () =>
    native().importDlpack(capsule, maxBytes),
  )
  return new StoredTensor({
    source: new MemorySource(bytes, 'a DLPack tensor'),
    start: 0,
    dtype,
    shape,
    name,
  })
}
