/** The storages that persistent ids name, each known by its key, and where their bytes are. */
import type { ByteSource } from '../../bytes/source.js'
import { FileFault } from '../file_fault.js'
import { quote } from '../quote.js'
import type { Report } from '../report.js'
import { describeValue } from './pickle/machine.js'
import { PickleGlobal, PickleOpaque, PickleTuple, type PickleValue, StorageValue } from './pickle/values.js'
import { typeOfStorage } from './torch_types.js'

/** The bytes of a storage. */
export interface StoragePlace {
  readonly source: ByteSource
  readonly start: number
  readonly byteLength: number
}

export interface StorageInfo {
  readonly value: StorageValue
  place: StoragePlace | undefined
}

/** Finds the bytes of a storage by its key; undefined where the file has none, or where they follow later. */
export type FindPlace = (key: string) => StoragePlace | undefined

export class StorageTable {
  /** By key. Those of `constants.pkl` have keys of their own. */
  readonly byKey = new Map<string, StorageInfo>()
  readonly #report: Report
  readonly #find: FindPlace | undefined

  /** @param find - absent where the bytes follow the pickles, whose place is set later */
  constructor(report: Report, find?: FindPlace) {
    this.#report = report
    this.#find = find
  }

  /**
   * The storage of `('storage', class, key, location, elements)`, in old files with a view `(key, offset, size)` behind.
   *
   * @param folder - starts the keys of storages that are not those of the object
   * @throws FileFault for another id, for a class outside the allow-list, and for bytes that are missing or of another number
   */
  storageOf(id: readonly PickleValue[], offset: number, folder = ''): StorageValue {
    const [tag, storageClass, key, location, elements, view = null] = id
    if (tag !== 'storage') {
      throw fault(
        'ERR_UNSUPPORTED',
        `A persistent id is of ${describeValue(tag ?? null)}; expected "storage".`,
        offset,
      )
    }
    const isStorage = storageClass instanceof PickleGlobal && storageClass.kind === 'storage'
    if (!isStorage && !(storageClass instanceof PickleOpaque)) {
      const found = describeValue(storageClass ?? null)
      throw fault('ERR_UNSUPPORTED', `${found} is no class of storages.`, offset)
    }
    if (typeof key !== 'string' || key.includes('/') || !isCount(elements)) {
      throw fault('ERR_HEADER', 'The key or the length of a storage is wrong.', offset)
    }
    const type = isStorage ? typeOfStorage(storageClass.name) : undefined
    const root = new StorageValue(folder === '' ? key : `${folder}/${key}`, type, elements)
    const known = this.#known(root, offset) ?? this.#add(root, location === 'meta', offset)
    return view === null ? known : viewOf(known, view, offset)
  }

  #known(root: StorageValue, offset: number): StorageValue | undefined {
    const { key } = root
    const known = this.byKey.get(key)
    if (!known) return undefined
    const { value, place } = known
    if (value.type === root.type && value.elements === root.elements) return value
    const size = byteLengthOf(root)
    if (size !== (place?.byteLength ?? byteLengthOf(value))) {
      const message = `The storage ${quote(key)} has ${byteLengthOf(value)} bytes in one place and ${size} in another.`
      throw fault('ERR_HEADER', message, offset)
    }
    const types = `${typeName(value)} and ${typeName(root)}`
    const message = `The storage ${quote(key)} is used as ${types}; torch reads both as the first.`
    this.#report.deviation('ERR_DTYPE', message, { path: `storages[${quote(key)}]`, offset })
    return root
  }

  #add(value: StorageValue, isMeta: boolean, offset: number): StorageValue {
    const { key } = value
    const place = this.#find?.(key)
    const needed = byteLengthOf(value)
    if (this.#find && !place && !isMeta) {
      throw fault('ERR_NO_DATA', `The archive has no member for the storage ${quote(key)}.`, offset)
    }
    if (place && place.byteLength !== needed) {
      const message = `The storage ${quote(key)} is declared with ${needed} bytes; its member has ${place.byteLength}.`
      throw fault('ERR_HEADER', message, offset)
    }
    this.byKey.set(key, { value, place })
    return value
  }
}

function viewOf(root: StorageValue, view: PickleValue, offset: number): StorageValue {
  const [key, start, size] = view instanceof PickleTuple ? view.items : []
  if (typeof key !== 'string' || !isCount(start) || !isCount(size)) {
    throw fault('ERR_HEADER', 'The view of a storage is not (key, offset, size).', offset)
  }
  if (start + size <= root.elements) return new StorageValue(root.key, root.type, size, start)
  const message = `A view of ${size} elements at ${start} exceeds its storage of ${root.elements}.`
  throw fault('ERR_OFFSET_RANGE', message, offset)
}

export function byteLengthOf({ type, elements }: StorageValue): number {
  return elements * (type?.bytes ?? 1)
}

function typeName({ type }: StorageValue): string {
  return type?.name ?? 'bytes'
}

function isCount(value: PickleValue | undefined): value is number {
  return Number.isSafeInteger(value) && (value as number) >= 0
}

function fault(code: FileFault['code'], message: string, offset: number): FileFault {
  return new FileFault(code, message, offset)
}
