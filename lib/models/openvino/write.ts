/**
 * Plans the two files of a model whose constants were changed. Where they were only replaced, the new values take the place of the
 * old ones in the file of weights, or stand behind the others where a constant shares its bytes or has another number of them; only
 * then the XML file changes, in the offset and size of its layer. All other bytes of both files stay.
 */
import type { ByteSource } from '../../bytes/source.js'
import { TileworkError } from '../../errors.js'
import { Budget } from '../../formats/budget.js'
import type { WritePlan, WriteSegment, WriteTarget } from '../../formats/format.js'
import type { Constant } from '../../formats/openvino/constant.js'
import { ConstantKeys } from '../../formats/openvino/constants.js'
import { CONST_TYPES, FORMAT_NAME } from '../../formats/openvino/schema.js'
import { type Layer, walkXml } from '../../formats/openvino/walk.js'
import { append } from '../../long_lists.js'
import type { OpenvinoModel } from './model.js'
import { planWeights } from './pair.js'
import { type Patch, patched } from './patch.js'
import { type Place, placePatch, planAllWeights, rewritePatches } from './rewrite.js'
import { type StoredValues, storedValues } from './stored_values.js'

/** @throws TileworkError ERR_NO_DATA, ERR_VALUE, ERR_ARGUMENT for a target that does not end in .xml or whose weights are taken */
export async function planModel(
  model: OpenvinoModel,
  _options: Record<never, never> = {},
  { path }: WriteTarget = {},
): Promise<WritePlan> {
  const { weights, bytes } = model.files
  if (!('source' in weights)) {
    throw new TileworkError('ERR_NO_DATA', `The model has no weights: ${weights.missing}.`, {
      format: FORMAT_NAME,
    })
  }
  const { plan, patches } = await planContents(model, weights.source)
  const xml = patched(bytes, patches)
  const sibling = await planWeights(path ?? 'model.xml', plan)
  return { byteLength: xml.byteLength, segments: [{ kind: 'bytes', bytes: xml }], siblings: [sibling] }
}

interface PlannedContents {
  /** The file of weights. */
  readonly plan: WritePlan
  /** Changes of the XML file. */
  readonly patches: readonly Patch[]
}

async function planContents(model: OpenvinoModel, source: ByteSource): Promise<PlannedContents> {
  if (model.float16.size === 0) {
    const { plan, moved } = await planReplaced(model, source)
    return { plan, patches: placePatches(model, moved) }
  }
  const { plan, places } = await planAllWeights(model, source)
  return { plan, patches: rewritePatches(model, places) }
}

interface Replacement {
  readonly constant: Constant
  readonly values: StoredValues
}

async function planReplaced(
  model: OpenvinoModel,
  source: ByteSource,
): Promise<{ readonly plan: WritePlan; readonly moved: ReadonlyMap<string, Place> }> {
  const { constants } = model.files
  const shared = sharedRanges(constants)
  const [here, behind]: [Replacement[], Replacement[]] = [[], []]
  for (const constant of constants) {
    const tensor = model.replaced.get(constant.key)
    if (!tensor || constant.byteLength === 0) continue
    const values = await storedValues(tensor, constant.type, constant)
    const fits = values.byteLength === constant.byteLength && !shared.has(constant)
    ;(fits ? here : behind).push({ constant, values })
  }
  const segments: WriteSegment[] = []
  let at = 0
  const keepUpTo = (end: number): void => {
    if (end > at) segments.push({ kind: 'range', source, start: at, end })
    at = end
  }
  for (const { constant, values } of here.sort((one, other) => one.constant.offset - other.constant.offset)) {
    keepUpTo(constant.offset)
    segments.push(values.segment)
    at += values.byteLength
  }
  keepUpTo(source.byteLength)
  const moved = new Map<string, Place>()
  for (const { constant, values } of behind) {
    segments.push(values.segment)
    moved.set(constant.key, { offset: at, size: values.byteLength })
    at += values.byteLength
  }
  return { plan: { byteLength: at, segments }, moved }
}

/** The constants whose bytes belong to another one, too. */
function sharedRanges(constants: readonly Constant[]): ReadonlySet<Constant> {
  const shared = new Set<Constant>()
  const sorted = constants
    .filter(({ byteLength }) => byteLength > 0)
    .sort((one, other) => one.offset - other.offset)
  // The one of those before that ends last.
  let before: Constant | undefined
  for (const constant of sorted) {
    const end = before ? before.offset + before.byteLength : 0
    if (before && constant.offset < end) shared.add(constant).add(before)
    if (!before || constant.offset + constant.byteLength > end) before = constant
  }
  return shared
}

/** Changes of offset and size of the constants that moved. */
function placePatches(model: OpenvinoModel, moved: ReadonlyMap<string, Place>): Patch[] {
  if (moved.size === 0) return []
  const patches: Patch[] = []
  eachConstant(model, (layer, key) => {
    const place = moved.get(key)
    if (place) append(patches, placePatch(layer, place))
  })
  return patches
}

/** Reads the XML file again, and gives each constant with the key that it had the first time. */
function eachConstant(model: OpenvinoModel, visit: (layer: Layer, key: string) => void): void {
  // Without limits: those of the user were kept the first time.
  const budget = new Budget({}, {})
  const keys = new ConstantKeys(budget)
  walkXml(model.files.bytes, budget, {
    layer: (layer) => {
      if (CONST_TYPES.has(layer.type)) visit(layer, keys.of(layer))
    },
  })
}
