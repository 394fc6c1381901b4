/**
 * Opens the external files of tensors that are not listed: in attributes, subgraphs, functions and training graphs.
 *
 * Faults are ignored here; `check` reports them, and so does access to such a tensor.
 */
import type { ByteSource } from '../../../bytes/source.js'
import type { Budget } from '../../budget.js'
import { FileFault } from '../../file_fault.js'
import { Report } from '../../report.js'
import { LENGTH, type Steps, visitFields, WireCursor, walkSource } from '../protobuf/wire.js'
import {
  type FieldInfo,
  FORMAT_NAME,
  isMessageKind,
  MAX_EXTERNAL_FILES,
  MESSAGES,
  type MessageName,
} from '../schema.js'
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

/** By message: the kinds of the fields, by number, that are a tensor or may have one. */
const SEARCHED = new Map(
  (Object.keys(MESSAGES) as MessageName[]).map((name) => [
    name,
    MESSAGES[name].map((field) => kindIn(name, field)),
  ]),
)

function kindIn(name: MessageName, field: FieldInfo | undefined): MessageName | undefined {
  if (!field || !isMessageKind(field.kind)) return undefined
  const isSearched = TENSOR_FIELDS[name]?.includes(field.name) ?? name === 'SparseTensorProto'
  return isSearched ? field.kind : undefined
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
    const steps = this.#message(name, start, end, depth)
    if (steps) yield* steps
  }

  /** Returns a walk over what the window does not hold. */
  #message(name: MessageName, start: number, end: number, depth: number): Steps<void> | undefined {
    this.#budget.require('depth', depth, start)
    const { cursor } = this
    const kinds = SEARCHED.get(name)!
    cursor.position = start
    return visitFields(cursor, end, () => {
      const kind = kinds[cursor.number]
      if (kind === undefined || cursor.wireType !== LENGTH) return cursor.endOfRun(end)
      const { valueStart, position } = cursor
      return kind === 'TensorProto'
        ? this.#tensor(valueStart, position)
        : this.#message(kind, valueStart, position, depth + 1)
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
