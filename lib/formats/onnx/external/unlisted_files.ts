/**
 * Files that tensors lie in which opening does not list: those in attributes of nodes, in subgraphs, functions and training.
 * What is broken there is passed over; a check tells it, and whoever asks for such a tensor.
 */
import type { ByteSource } from '../../../bytes/source.js'
import type { Budget } from '../../budget.js'
import { FileFault } from '../../file_fault.js'
import { Report } from '../../report.js'
import { eachField, LENGTH, type Steps, WireCursor, walkSource } from '../protobuf/wire.js'
import { FORMAT_NAME, isMessageKind, MAX_EXTERNAL_FILES, MESSAGES, type MessageName } from '../schema.js'
import { WAYS_TO_TENSORS } from '../tensor/fields.js'
import { walkTensor } from '../tensor/header.js'
import { checkTensor } from '../tensor/rules.js'
import type { ExternalFiles } from './files.js'

/** Part of a message, from the tag of a field to the end of one: fields of it that a walk has passed over. */
export interface PassedFields {
  readonly message: MessageName
  readonly start: number
  end: number
  readonly depth: number
}

/**
 * Opens the files of all tensors of a model but the initializers of its main graph, which are open by then.
 *
 * @param passed - the fields of the model that may lead to one
 */
export async function openFilesOfOthers(
  source: ByteSource,
  passed: readonly PassedFields[],
  files: ExternalFiles,
  budget: Budget,
): Promise<void> {
  const finder = new LocationFinder(source, budget)
  try {
    for (const { message, start, end, depth } of passed)
      await walkSource(finder.message(message, start, end, depth), finder.cursor)
  } catch (error) {
    if (!(error instanceof FileFault)) throw error
  }
  for (const [location, offset] of finder.locations) {
    await files.open(location, { path: 'model.external_data', offset })
  }
}

class LocationFinder {
  readonly cursor: WireCursor
  /** Byte offsets of the first mention, by location. */
  readonly locations = new Map<string, number>()
  readonly #budget: Budget
  readonly #unheard = new Report(FORMAT_NAME, 'lenient', 'collect')

  constructor(source: ByteSource, budget: Budget) {
    this.cursor = new WireCursor(source)
    this.#budget = budget
  }

  *message(name: MessageName, start: number, end: number, depth: number): Steps<void> {
    this.#budget.require('depth', depth, start)
    const { cursor } = this
    cursor.position = start
    yield* eachField(cursor, end, () => {
      const field = MESSAGES[name][cursor.number]
      if (!field || cursor.wireType !== LENGTH || !isMessageKind(field.kind)) return undefined
      if (!(WAYS_TO_TENSORS[name]?.includes(field.name) ?? name === 'SparseTensorProto')) return undefined
      const { valueStart, position } = cursor
      return field.kind === 'TensorProto'
        ? this.#tensor(valueStart, position)
        : this.message(field.kind, valueStart, position, depth + 1)
    })
  }

  *#tensor(start: number, end: number): Steps<void> {
    this.cursor.position = start
    const header = yield* walkTensor(this.cursor, end)
    if (!header.isExternal) return
    const checked = checkTensor(header, { report: this.#unheard, path: () => '', offset: start })
    if (checked?.placement.kind !== 'external') return
    const { location, offset } = checked.placement
    // One more than there may be, so that it is told; names beyond would only be kept.
    const isFull = this.locations.size > MAX_EXTERNAL_FILES
    if (!isFull && !this.locations.has(location)) this.locations.set(location, offset)
  }
}
