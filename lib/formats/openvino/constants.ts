/** Collects the constants of an IR, opens the file that has their bytes, and checks that all of them lie in it. */
import { lostBytesError } from '../../bytes/check_range.js'
import type { ByteSource } from '../../bytes/source.js'
import { TileworkError } from '../../errors.js'
import type { Budget } from '../budget.js'
import { FileFault } from '../file_fault.js'
import type { ReadOptions } from '../format.js'
import { quote } from '../quote.js'
import type { Report } from '../report.js'
import { type Constant, readConstant } from './constant.js'
import { CONST_TYPES } from './schema.js'
import { type Layer, type Net, type Visitor, walkXml } from './walk.js'

/** The file of the weights, or why there is none. */
export type Weights = { readonly source: ByteSource } | { readonly missing: string }

export interface WalkedIr extends Net {
  /** The XML file. */
  readonly bytes: Uint8Array
  readonly constants: readonly Constant[]
  readonly weights: Weights
}

export interface WalkMeans {
  readonly budget: Budget
  readonly report: Report
  readonly sibling: ReadOptions['sibling']
  /** Whether a file of weights that cannot be opened is an error at every level, as for a check. */
  readonly needsWeights: boolean
}

/** Gives each constant of a file a key of its own. */
export class ConstantKeys {
  readonly #taken = new Set<string>()
  /** How many more constants had a name and id that was taken: counting from 1 for each would take quadratic time. */
  readonly #again = new Map<string, number>()
  readonly #budget: Budget

  constructor(budget: Budget) {
    this.#budget = budget
  }

  of({ graph, name, id, start }: Layer): string {
    const wanted = graph.path + name
    this.#budget.demand('headerBytes', wanted.length + id.length, start)
    const numbered = `${wanted}#${id}`
    let key = this.#taken.has(wanted) ? numbered : wanted
    while (this.#taken.has(key)) {
      const again = (this.#again.get(numbered) ?? 0) + 1
      this.#again.set(numbered, again)
      key = `${numbered}#${again}`
    }
    this.#taken.add(key)
    return key
  }
}

/**
 * Reads the XML file and opens the other one, if there are constants.
 *
 * @returns undefined where the XML file cannot be read to its end, which is reported
 */
export async function walkIr(
  source: ByteSource,
  visitor: Visitor,
  { budget, report, sibling, needsWeights }: WalkMeans,
): Promise<WalkedIr | undefined> {
  const constants: Constant[] = []
  const keys = new ConstantKeys(budget)
  const layer = (each: Layer): void => {
    visitor.layer?.(each)
    if (!CONST_TYPES.has(each.type)) return
    budget.demand('tensors', 1, each.start)
    const key = keys.of(each)
    try {
      constants.push(readConstant(each, key, budget))
    } catch (error) {
      if (!(error instanceof FileFault) || error.code === 'ERR_LIMIT') throw error
      report.broken(error.code, error.message, { path: `constants[${quote(key)}]`, offset: error.offset })
    }
  }
  let bytes: Uint8Array
  let net: Net
  try {
    budget.demand('headerBytes', source.byteLength, 0)
    bytes = await readWhole(source)
    net = walkXml(bytes, budget, { ...visitor, layer })
  } catch (error) {
    if (!(error instanceof FileFault)) throw error
    report.broken(error.code, error.message, { path: '', offset: error.offset })
    return undefined
  }
  const weights = await openWeights(source, constants, { report, sibling, needsWeights })
  if ('source' in weights) checkRanges(constants, weights.source.byteLength, report)
  return { ...net, bytes, constants, weights }
}

/** A copy: the owner of the bytes may change them between two looks. */
async function readWhole(source: ByteSource): Promise<Uint8Array> {
  const bytes = new Uint8Array(await source.read(0, source.byteLength))
  if (bytes.byteLength !== source.byteLength) throw lostBytesError(source.label)
  return bytes
}

/** The name of the file of weights beside an XML file: NAME.bin of NAME.xml; `model.bin` where the XML file has no name. */
export function weightsName(xmlPath: string | undefined): string {
  const [, name = 'model'] = /([^/\\]*)\.xml$/i.exec(xmlPath ?? '') ?? []
  return `${name}.bin`
}

async function openWeights(
  { label }: ByteSource,
  constants: readonly Constant[],
  { report, sibling, needsWeights }: Omit<WalkMeans, 'budget'>,
): Promise<Weights> {
  if (constants.length === 0) return { missing: 'no constant needs one' }
  const name = weightsName(label)
  try {
    return { source: await sibling(name) }
  } catch (error) {
    // A model must not lose its values silently because of a flag, or of a link that leads elsewhere.
    if (!(error instanceof TileworkError) || error.code === 'ERR_PERMISSION') throw error
    const message = `The file of the weights, ${quote(name)}, cannot be opened: ${error.message}`
    const place = { path: '', offset: 0 }
    if (error.code === 'ERR_PATH_ESCAPE') report.broken(error.code, message, place)
    else if (needsWeights) report.broken('ERR_NO_DATA', message, place)
    else report.deviation('ERR_NO_DATA', message, place)
    return { missing: `${quote(name)} cannot be opened` }
  }
}

/** The reference refuses a range that leads out of the file even where the constant needs fewer bytes. */
function checkRanges(constants: readonly Constant[], fileBytes: number, report: Report): void {
  for (const { key, offset, size, at } of constants) {
    if (size <= fileBytes - offset) continue
    const message = `The constant ${quote(key)} has ${size} bytes at ${offset}; the file of the weights ends at ${fileBytes}.`
    report.broken('ERR_TRUNCATED', message, { path: `constants[${quote(key)}]`, offset: at })
  }
}
