/**
 * Opens the external files of tensors that are not listed: in attributes, subgraphs, functions and training graphs.
 *
 * Faults are ignored here; `check` reports them, and so does access to such a tensor.
 */
import type { ByteSource } from '../../../bytes/source.js'
import type { Budget } from '../../budget.js'
import { FileFault } from '../../file_fault.js'
import { Report } from '../../report.js'
import { eachField, LENGTH, type Steps, WireCursor, walkSource } from '../protobuf/wire.js'
import { FORMAT_NAME, isMessageKind, MAX_EXTERNAL_FILES, MESSAGES, type MessageName } from '../schema.js'
import { TENSOR_FIELDS } from '../tensor/fields.js'
import { walkTensor } from '../tensor/header.js'
import { checkTensor } from '../tensor/rules.js'
import type { ExternalFiles } from './files.js'

/** A range of whole fields of one message that a walk has skipped. */
export interface SkippedFields {
  readonly message: MessageName
  readonly start: number
  end: number
  readonly depth: number
}

/**
 * Opens the files of all external tensors except the initializers of the main graph, whose files are open.
 *
 * @param skipped - fields of the model that may contain such tensors
 */
export async function openFilesOfUnlisted(
  source: ByteSource,
  skipped: readonly SkippedFields[],
  files: ExternalFiles,
  budget: Budget,
): Promise<void> {
  const finder = new LocationFinder(source, budget)
  try {
    for (const { message, start, end, depth } of skipped)
      await walkSource(finder.message(message, start, end, depth), finder.cursor)
  } catch (error) {
    if (!(error instanceof FileFault)) throw error
  }
  for (const [location, offset] of finder.locations) {
    await files.open(location, { path: 'model.external_data', offset })
  }
}

/** Collects the locations of all external tensors of a message. */
export class LocationFinder {
  readonly cursor: WireCursor
  /** Byte offset of the first mention of each location. */
  readonly locations = new Map<string, number>()
  readonly #budget: Budget
  readonly #silent = new Report(FORMAT_NAME, 'lenient', 'collect')

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
      if (!(TENSOR_FIELDS[name]?.includes(field.name) ?? name === 'SparseTensorProto')) return undefined
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
    const checked = checkTensor(header, { report: this.#silent, path: () => '', offset: start })
    if (checked?.placement.kind !== 'external') return
    const { location, offset } = checked.placement
    // One above the limit, so that the excess is reported; more would only use memory.
    const isFull = this.locations.size > MAX_EXTERNAL_FILES
    if (!isFull && !this.locations.has(location)) this.locations.set(location, offset)
  }
}
