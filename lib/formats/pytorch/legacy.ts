/**
 * Reads the stream that torch wrote before 1.6: five pickles (a number, a protocol, the system, the object, the keys of the
 * storages), then for each key the number of its elements and the elements.
 */
import { ByteReader } from '../../bytes/reader.js'
import type { ByteSource } from '../../bytes/source.js'
import { FileFault } from '../file_fault.js'
import { quote } from '../quote.js'
import type { ReadObject } from './checkpoint.js'
import { HeapBudget } from './heap_budget.js'
import { PickleCut } from './pickle/machine.js'
import { unpickle } from './pickle/unpickle.js'
import { PickleList, type PickleValue } from './pickle/values.js'
import { LEGACY_NUMBER, LEGACY_PROTOCOL, MAX_PICKLE_BYTES } from './schema.js'
import { byteLengthOf, StorageTable } from './storages.js'
import type { FileMeans } from './zip_checkpoint.js'

/** Bytes of the first read. Nothing says how long the pickles are, so they are read again with four times as many. */
const FIRST_WINDOW_BYTES = 256 * 1024
const WINDOW_GROWTH = 4

const COUNT_BYTES = 8

/** @throws FileFault for a stream that cannot be read */
export async function readLegacy(source: ByteSource, means: FileMeans): Promise<ReadObject> {
  const most = Math.min(source.byteLength, MAX_PICKLE_BYTES)
  const { report, refuseName } = means
  const mark = report.mark()
  for (let size = Math.min(most, FIRST_WINDOW_BYTES); ; size = Math.min(most, size * WINDOW_GROWTH)) {
    const bytes = new Uint8Array(await source.read(0, size))
    report.restore(mark)
    const storages = new StorageTable(report)
    try {
      // Each attempt starts anew, so what an earlier one charged is free again.
      const heap = new HeapBudget(source.byteLength)
      const pickles = new Pickles(bytes, {
        heap,
        isScript: false,
        refuseName,
        storageOf: (id, at) => storages.storageOf(id, at),
      })
      const { value, offset, keys } = readPickles(pickles)
      means.budget.demand('headerBytes', pickles.position, offset)
      await placeStorages(source, pickles.position, keys, storages)
      // Machines of either byte order write elements in little-endian order.
      const file = { storages, isBigEndian: false }
      return { container: 'legacy', file, roots: [{ value }], pickleBytes: pickles.position, offset }
    } catch (error) {
      if (!(error instanceof PickleCut) || size === source.byteLength) throw error
      if (size === MAX_PICKLE_BYTES) {
        throw new FileFault('ERR_LIMIT', `The pickles have more than ${MAX_PICKLE_BYTES} bytes.`, 0)
      }
    }
  }
}

/** Pickles one after the other. */
class Pickles {
  position = 0
  readonly #bytes: Uint8Array
  readonly #context: Parameters<typeof unpickle>[1]

  constructor(bytes: Uint8Array, context: Parameters<typeof unpickle>[1]) {
    this.#bytes = bytes
    this.#context = context
  }

  next(): PickleValue {
    const { value, end } = unpickle(
      { bytes: this.#bytes, start: this.position, fileOffset: 0 },
      this.#context,
    )
    this.position = end
    return value
  }
}

interface Stream {
  readonly value: PickleValue
  /** Of the pickle of the object. */
  readonly offset: number
  readonly keys: readonly PickleValue[]
}

function readPickles(pickles: Pickles): Stream {
  if (pickles.next() !== LEGACY_NUMBER)
    throw new FileFault('ERR_HEADER', 'The stream has not the number of torch.', 0)
  const protocol = pickles.next()
  if (protocol !== LEGACY_PROTOCOL) {
    throw new FileFault('ERR_UNSUPPORTED', `The stream has another protocol than ${LEGACY_PROTOCOL}.`, 0)
  }
  // The system that wrote it, which changes nothing.
  pickles.next()
  const offset = pickles.position
  const value = pickles.next()
  const at = pickles.position
  const keys = pickles.next()
  if (keys instanceof PickleList) return { value, offset, keys: keys.items }
  throw new FileFault('ERR_HEADER', 'The keys of the storages are not a list.', at)
}

/** Finds the bytes of each storage behind the pickles. */
async function placeStorages(
  source: ByteSource,
  start: number,
  keys: readonly PickleValue[],
  storages: StorageTable,
): Promise<void> {
  const reader = new ByteReader(source, COUNT_BYTES)
  let at = start
  for (const key of keys) {
    const info = typeof key === 'string' ? storages.byKey.get(key) : undefined
    if (!info) throw new FileFault('ERR_HEADER', `No tensor uses the storage ${quote(String(key))}.`, at)
    if (info.place)
      throw new FileFault('ERR_DUPLICATE', `The storage ${quote(String(key))} is there twice.`, at)
    reader.seek(at)
    await reader.load(COUNT_BYTES)
    const count = reader.u64()
    if (count !== info.value.elements) {
      const message = `The storage ${quote(String(key))} has ${count} elements; ${info.value.elements} are declared.`
      throw new FileFault('ERR_HEADER', message, at)
    }
    const byteLength = byteLengthOf(info.value)
    if (byteLength > source.byteLength - at - COUNT_BYTES) {
      const message = `The storage ${quote(String(key))} has ${byteLength} bytes at ${at + COUNT_BYTES}; the file ends at ${source.byteLength}.`
      throw new FileFault('ERR_TRUNCATED', message, at)
    }
    info.place = { source, start: at + COUNT_BYTES, byteLength }
    at += COUNT_BYTES + byteLength
  }
  for (const [key, { place }] of storages.byKey) {
    if (!place) throw new FileFault('ERR_NO_DATA', `The stream ends before the storage ${quote(key)}.`, at)
  }
}
