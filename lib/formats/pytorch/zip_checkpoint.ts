/** Reads the archives of torch.save and torch.jit.save: the directory, the pickles, and where each storage is. */
import type { ByteSource } from '../../bytes/source.js'
import { InflatedSource } from '../../zip/inflated_source.js'
import { type Content, walkMembers } from '../../zip/walk.js'
import type { Budget } from '../budget.js'
import { FileFault } from '../file_fault.js'
import { quote } from '../quote.js'
import type { Report } from '../report.js'
import type { ReadObject, Root } from './checkpoint.js'
import type { HeapBudget } from './heap_budget.js'
import type { PickleBytes, PickleContext } from './pickle/machine.js'
import { unpickle } from './pickle/unpickle.js'
import {
  BYTE_ORDER_MEMBER,
  CONSTANTS_MEMBER,
  FORMAT_NAME,
  MAX_PICKLE_BYTES,
  OBJECT_MEMBER,
} from './schema.js'
import { type StoragePlace, StorageTable } from './storages.js'

/** What reading a file needs. */
export interface FileMeans {
  readonly budget: Budget
  readonly heap: HeapBudget
  readonly report: Report
  refuseName(name: string, offset: number): void
}

/** Called with each member, for a check of its data. */
type Visit = (content: Content) => Promise<void>

/** Undefined where the archive cannot be read, which is reported. @throws FileFault for a pickle that cannot be read */
export async function readArchive(
  source: ByteSource,
  means: FileMeans,
  visit?: Visit,
): Promise<ReadObject | undefined> {
  const { budget, report } = means
  const members = await walkMembers(source, { format: FORMAT_NAME, budget, report }, async (content) => {
    await visit?.(content)
    return content
  })
  if (!members) return undefined
  const archive = new Archive(members.map(({ made }) => made))
  const isBigEndian = await archive.readByteOrder()
  const storages = new StorageTable(report, (key) => archive.place(key.includes('/') ? key : `data/${key}`))
  const isScript = archive.find(CONSTANTS_MEMBER) !== undefined
  const { heap, refuseName } = means
  const roots: Root[] = []
  let [pickleBytes, offset] = [0, 0]
  for (const [member, folder] of isScript ? SCRIPT_PICKLES : PICKLES) {
    const pickle = await archive.readPickle(member, budget)
    const storageOf: PickleContext['storageOf'] = (id, at) => storages.storageOf(id, at, folder)
    const { value } = unpickle(pickle, { heap, isScript, refuseName, storageOf })
    roots.push({ ...(folder !== '' && { key: folder }), value })
    pickleBytes += pickle.bytes.byteLength
    offset ||= pickle.fileOffset
  }
  return {
    container: isScript ? 'torchscript' : 'zip',
    file: { storages, isBigEndian },
    roots,
    pickleBytes,
    offset,
  }
}

/** Pickles by member, and the folder of the storages that each names where it is not `data`. */
const PICKLES = [[OBJECT_MEMBER, '']] as const
const SCRIPT_PICKLES = [...PICKLES, [CONSTANTS_MEMBER, 'constants']] as const

/** Characters of `little` and `big`, and room to see that a text is neither. */
const MAX_BYTE_ORDER_BYTES = 16

/** The members below the one folder of an archive. */
class Archive {
  readonly #members = new Map<string, Content>()
  /** Its name with a slash. */
  readonly #folder: string

  /** @throws FileFault for two members of one name, for members outside the folder, and where there is no pickle */
  constructor(contents: readonly Content[]) {
    const pickles = contents.filter(({ entry }) => /^[^/]+\/data\.pkl$/.test(entry.name))
    const [pickle] = pickles
    if (!pickle) {
      throw new FileFault(
        'ERR_HEADER',
        'The archive has no member data.pkl in a folder, so torch did not write it.',
        0,
      )
    }
    const folder = pickle.entry.name.slice(0, -OBJECT_MEMBER.length)
    for (const content of contents) {
      const { entry, place } = content
      const what = `${place.path} (${quote(entry.name)})`
      if (this.#members.has(entry.name)) {
        throw new FileFault('ERR_DUPLICATE', `${what} has the name of another member.`, place.offset)
      }
      if (!entry.name.startsWith(folder)) {
        throw new FileFault(
          'ERR_HEADER',
          `${what} is outside the folder ${quote(folder)} of the archive.`,
          place.offset,
        )
      }
      this.#members.set(entry.name, content)
    }
    this.#folder = folder
  }

  find(name: string): Content | undefined {
    return this.#members.get(this.#folder + name)
  }

  place(name: string): StoragePlace | undefined {
    const content = this.find(name)
    return (
      content && { source: content.source, start: content.start, byteLength: content.end - content.start }
    )
  }

  /** The pickle in a member. @throws FileFault ERR_LIMIT */
  async readPickle(name: string, budget: Budget): Promise<PickleBytes> {
    const content = this.find(name)!
    const { start, end, dataStart } = content
    if (end - start > MAX_PICKLE_BYTES) {
      const message = `${name} has ${end - start} bytes; the limit is ${MAX_PICKLE_BYTES}.`
      throw new FileFault('ERR_LIMIT', message, dataStart)
    }
    budget.demand('headerBytes', end - start, dataStart)
    return { bytes: await this.#read(content), start: 0, fileOffset: dataStart }
  }

  /** True for a big-endian file. Files before 2.0 do not say, and are little-endian. */
  async readByteOrder(): Promise<boolean> {
    const content = this.find(BYTE_ORDER_MEMBER)
    if (!content) return false
    const { start, end, dataStart } = content
    const order =
      end - start > MAX_BYTE_ORDER_BYTES ? '' : Buffer.from(await this.#read(content)).toString('latin1')
    if (order === 'little' || order === 'big') return order === 'big'
    throw new FileFault(
      'ERR_VALUE',
      `The byte order is ${quote(order)}; it must be "little" or "big".`,
      dataStart,
    )
  }

  async #read({ source, start, end }: Content): Promise<Uint8Array> {
    const bytes = await source.read(start, end)
    if (source instanceof InflatedSource) source.rewind()
    return bytes
  }
}
