/**
 * Moves values of a model to external data files, or back into the model, for the file that is being saved.
 *
 * Only the messages of moved tensors are written anew, and of these only the fields of the values. The model in memory
 * does not change.
 */
import { TileworkError } from '../../../errors.js'
import type { SiblingPlan, WriteSegment } from '../../../formats/format.js'
import { type DataRange, ExternalData } from '../../../formats/onnx/external/data_files.js'
import {
  checkExternalOptions,
  DEFAULT_THRESHOLD,
  type ExternalOptions,
} from '../../../formats/onnx/external/options.js'
import { type Message, type MessageField, Replacements } from '../../../formats/onnx/protobuf/message.js'
import { WireWriter } from '../../../formats/onnx/protobuf/wire_writer.js'
import { LOCATION_EXTERNAL } from '../../../formats/onnx/schema.js'
import { denseFields, type TensorField } from '../../../formats/onnx/tensor/fields.js'
import { tensorOfMessage } from '../../../formats/onnx/tensor/from_message.js'
import { type Property, TENSOR, TYPED_FIELDS } from '../../../formats/onnx/tensor/header.js'
import { type PlannedMessage, planTensor } from '../../../formats/onnx/tensor/plan.js'
import { ownEntry } from '../../../own_entry.js'
import type { DenseTensor, Tensor } from '../../../tensor/tensor.js'
import type { OnnxModel } from './model.js'

/** A tensor whose values move. */
interface Move {
  readonly owner: Message
  readonly field: MessageField
  readonly tensor: DenseTensor
  /** The new range in an external file; absent for values that move into the model. */
  readonly range?: DataRange
}

export interface MovedValues {
  readonly replacements: Replacements
  /** External data files. */
  readonly siblings: readonly SiblingPlan[]
}

/**
 * Moves the initializers of all graphs, tensors of attributes where the options say so, and all tensors that are external now. Tensors with missing data, strings and
 * unknown types stay as they are.
 *
 * @param options - false: all values move into the model
 * @throws TileworkError ERR_ARGUMENT, errors of `ExternalData.finish`, ERR_UNSUPPORTED for a broken tensor
 */
export async function moveValues(
  model: OnnxModel,
  options: ExternalOptions | false,
  path: string | undefined,
): Promise<MovedValues> {
  const data = options === false ? undefined : new ExternalData(checkExternalOptions(options))
  const fields = [...denseFields(model.message)]
  const floats = data ? shapeFloats(model) : new Set<string>()
  const moves = (data?.hasNames ? mainFirst(fields) : fields).flatMap(
    (found) => moveOf(found, data, floats) ?? [],
  )
  const siblings = (await data?.finish(path)) ?? []
  const replacements = new Replacements()
  for (const move of moves) replacements.set(move.owner, move.field, await planMove(move, data))
  return { replacements, siblings }
}

/** Initializers of the main graph first: they keep their names where a data file needs a name of its own for each tensor. */
function mainFirst(fields: readonly TensorField[]): TensorField[] {
  const isMain = ({ path }: TensorField): boolean => path.startsWith('graph.initializer[')
  return [...fields.filter(isMain), ...fields.filter((field) => !isMain(field))]
}

function moveOf(
  { owner, field }: TensorField,
  data: ExternalData | undefined,
  floats: ReadonlySet<string>,
): Move | undefined {
  const isExternal = field.kind === 'message' && field.int('data_location') === LOCATION_EXTERNAL
  const mayMove = owner.type === 'GraphProto' || (owner.type === 'AttributeProto' && data?.takesAttributes)
  if (!isExternal && !(mayMove && data)) return undefined
  const tensor = knownTensor(field)
  const name = field.kind === 'tensor' ? field.name : tensor?.name
  if (tensor?.kind !== 'dense' || !tensor.hasData) return undefined
  if (data?.takes(tensor) && !isShapeParameter(tensor, floats.has(name ?? '')))
    return { owner, field, tensor, range: data.add(tensor, tensor.name) }
  return isExternal ? { owner, field, tensor } : undefined
}

/**
 * Shapes, axes, padding, ends of slices: onnx infers shapes from their values and opens no data files, so onnx.checker would refuse
 * the model. Such lists have two numbers per axis at most, and are shorter than what moves by default.
 */
function isShapeParameter({ dtype, shape, storage }: DenseTensor, hasShapeFloats: boolean): boolean {
  const isList = (dtype === 'int64' || dtype === 'int32' || hasShapeFloats) && shape.length <= 1
  return isList && storage.byteLength < DEFAULT_THRESHOLD
}

/** Operators whose shapes follow from numbers that may be floats, and the inputs with them. */
const FLOAT_PARAMETERS: Readonly<Record<string, readonly number[]>> = {
  OneHot: [1],
  Range: [0, 1, 2],
  Resize: [1, 2],
  Upsample: [1],
}

/** Names in all graphs. */
function shapeFloats({ graph }: OnnxModel): ReadonlySet<string> {
  const names = new Set<string>()
  for (const { opType, inputs } of graph.allNodes())
    for (const at of ownEntry(FLOAT_PARAMETERS, opType) ?? []) names.add(inputs[at] ?? '')
  names.delete('')
  return names
}

/** Undefined for an unknown element type. */
function knownTensor(field: MessageField): Tensor | undefined {
  if (field.kind === 'tensor') return field.tensor
  try {
    return tensorOfMessage(field)
  } catch (error) {
    if (error instanceof TileworkError && error.code === 'ERR_DTYPE') return undefined
    throw error
  }
}

async function planMove(
  { field, tensor, range }: Move,
  data: ExternalData | undefined,
): Promise<PlannedMessage> {
  if (field.kind === 'tensor') return planTensor(tensor, field.name, true, range && data!.fieldsOf(range))
  if (range) {
    const fields = data!.fieldsOf(range, otherProperties(field))
    return field.planWith(VALUE_FIELDS, TENSOR.externalData, fields)
  }
  const { byteLength } = tensor.storage
  const tag = new WireWriter().lengthOf(TENSOR.rawData, byteLength).finish()
  const values: readonly WriteSegment[] = [
    { kind: 'bytes', bytes: tag },
    { kind: 'tensor', tensor },
  ]
  return field.planWith(VALUE_FIELDS, TENSOR.rawData, values)
}

/** Fields with the values or their location. */
const VALUE_FIELDS: ReadonlySet<number> = new Set([
  TENSOR.rawData,
  TENSOR.stringData,
  TENSOR.externalData,
  TENSOR.dataLocation,
  ...Object.values(TYPED_FIELDS).map(({ number }) => number),
])

/** Keys of `external_data` that describe the old location. */
const LOCATION_KEYS: ReadonlySet<string> = new Set(['location', 'offset', 'length', 'checksum', 'basepath'])

/** Prefix of onnxruntime's keys for ranges of prepacked weights in the same file. */
const PREPACKED = 'prepacked'

/** Properties with unknown keys, which are kept. */
function otherProperties(message: Message): Property[] {
  return message
    .messages('external_data')
    .map((entry) => ({ key: entry.text('key'), value: entry.text('value'), offset: 0 }))
    .filter(({ key }) => !LOCATION_KEYS.has(key) && !key.startsWith(PREPACKED))
}
