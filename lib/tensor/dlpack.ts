/**
 * DLPack: tensors handed from one native library to another in memory, without a copy where the owner allows it. In
 * JavaScript they travel in capsules, objects that other addons open by the type tag in `native/dlpack/capsule.h`.
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
  /** For libraries from before version 1.0, which cannot be told that memory is not to be written to: always a copy. */
  readonly legacy?: boolean
}

/**
 * A capsule with the tensor. Of a mapped file the memory of the map is shared, marked as read-only, and stays while the
 * other side has it, also after `close()`; memory of JavaScript is copied, since another thread may be the last to need it.
 *
 * @throws TileworkError ERR_ARGUMENT; ERR_UNSUPPORTED for a tensor that is not row-major or is padded; and what reading
 * the tensor throws
 */
export async function toDlpack(tensor: DenseTensor, options: ToDlpackOptions = {}): Promise<DlpackCapsule> {
  const checked = checkDense(tensor, 'toDlpack')
  checkOptions(options, 'toDlpack', ['legacy'])
  const legacy = readInput('The options of toDlpack', () => options.legacy === true)
  const { dtype, shape, storage } = checked
  if (!isPlain(storage)) {
    const message = `DLPack has no name for the layout ${storage.layout}; reorder the tensor to row_major first.`
    throw new TileworkError('ERR_UNSUPPORTED', message)
  }
  const bytes = await checked.bytes()
  return systemError.wrap('toDlpack', () => native().exportDlpack(bytes, dtype, shape, legacy))
}

export interface FromDlpackOptions {
  readonly name?: string
  /**
   * Most bytes of a tensor whose strides have elements more than once, as those of 0 do: such a tensor may be as large as
   * it likes, whatever memory there is behind it. Default 64 MiB.
   */
  readonly maxBytes?: number
}

/** What broadcast operands of one operator have; more is only made when it is asked for. */
const DEFAULT_REPEATED_BYTES = 64 * 1024 * 1024

/**
 * The tensor of a capsule, whose memory is shared where it is row-major without gaps. It is taken: the capsule is empty
 * then, and the other side's deleter is called when nobody uses the bytes any more. Other tensors are copied before the
 * call returns, since their owner may write to its memory as soon as it does.
 *
 * @param capsule - from `toDlpack`, or from another addon that makes such capsules
 * @throws TileworkError ERR_ARGUMENT for what is no capsule or is empty, ERR_UNSUPPORTED for another device, version or
 * element type, ERR_RANK, ERR_OVERFLOW, ERR_LIMIT beyond `maxBytes`; the capsule keeps its tensor then
 */
export function fromDlpack(capsule: DlpackCapsule, options: FromDlpackOptions = {}): DenseTensor {
  checkOptions(options, 'fromDlpack', ['name', 'maxBytes'])
  const name = readInput('The options of fromDlpack', () => checkName(options.name ?? ''))
  const maxBytes = readInput('The options of fromDlpack', () => options.maxBytes ?? DEFAULT_REPEATED_BYTES)
  if (!Number.isSafeInteger(maxBytes) || maxBytes < 0) {
    const message = `maxBytes must be a whole number of bytes; it is ${valueText(maxBytes)}.`
    throw new TileworkError('ERR_ARGUMENT', message)
  }
  if (typeof capsule !== 'object' || capsule === null) {
    throw new TileworkError('ERR_ARGUMENT', `fromDlpack takes a capsule; ${valueText(capsule)} was given.`)
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
