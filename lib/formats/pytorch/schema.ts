/**
 * The limits of reading PyTorch checkpoints, and the names in their archives. Source: `torch/serialization.py` and
 * `caffe2/serialize/inline_container.h` of PyTorch 2.14.
 */
import type { DefaultLimits } from '../budget.js'

export const FORMAT_NAME = 'pytorch'

/** The extension of an index of shards. */
export const INDEX_EXTENSION = '.bin.index.json'

/** The pickle of the object, below the one folder of an archive. */
export const OBJECT_MEMBER = 'data.pkl'
/** The pickle of constants, which only TorchScript archives have. */
export const CONSTANTS_MEMBER = 'constants.pkl'
export const BYTE_ORDER_MEMBER = 'byteorder'

/** Starts a file of `torch.save` before 1.6: a pickle of the number 0x1950a86a20f9469cfc6c. */
export const LEGACY_MAGIC = '\x80\x02\x8a\x0a\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19\x2e'
export const LEGACY_NUMBER = 0x1950a86a20f9469cfc6cn
export const LEGACY_PROTOCOL = 1001

/** The newest protocol of pickles; torch writes 2. */
export const MAX_PROTOCOL = 5

/** Maximum bytes of one pickle: names and shapes of 300,000 tensors; the largest published checkpoints have some thousand. */
export const MAX_PICKLE_BYTES = 2 ** 26

/** Maximum number of axes: torch itself has 64 at most in its kernels. */
export const MAX_RANK = 64

/**
 * Maximum bytes of the JavaScript heap that the values of a file may take: this many for each byte of the file, and at least
 * `HEAP_AT_LEAST`.
 */
export const HEAP_PER_FILE_BYTE = 4
export const HEAP_AT_LEAST = 2 ** 25

/**
 * Visits of values beyond one per byte of the pickle. Values that a file uses in several places are visited in each, and lists
 * of shared lists would be 2^60 places.
 */
export const MAX_SHARED_VISITS = 100_000

/** Limits of reading a checkpoint. */
export const DEFAULT_LIMITS = {
  /** Members of the archive, and tensors. Each takes some hundred bytes of memory. */
  tensors: 2 ** 20,
  /** Directory, local headers and pickles. */
  headerBytes: 2 ** 28,
  /**
   * Views of one storage may have more bytes than the file, as may deflated members. Any machine can hold 4 GiB; beyond that, 4
   * times the file.
   */
  totalBytes: { perFileByte: 4, atLeast: 2 ** 32 },
  /** Lists in lists; optimizers nest ten deep. */
  depth: 200,
} as const satisfies DefaultLimits

/** Keys of a tensor's metadata. */
export const METADATA = {
  requiresGrad: 'pytorch.requires_grad',
  storage: 'pytorch.storage',
  /** The element type where no type of tilework has its meaning. */
  type: 'pytorch.dtype',
} as const
