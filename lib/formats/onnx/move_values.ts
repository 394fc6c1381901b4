/**
 * Moves the values of a model's tensors out of it or into it. Only messages of tensors whose values move are written
 * anew, and of these only the fields that carry values or say where they are; the model itself stays as it is.
 */
import { TileworkError } from '../../errors.js'
import type { DenseTensor, Tensor } from '../../tensor/tensor.js'
import type { SiblingPlan, WriteSegment } from '../format.js'
import { type DataPlace, ExternalData } from './external/data_files.js'
import { checkExternalOptions, type ExternalOptions } from './external/options.js'
import type { OnnxModel } from './model/model.js'
import { type Message, type MessageField, Replacements } from './protobuf/message.js'
import { WireWriter } from './protobuf/wire_writer.js'
import { LOCATION_EXTERNAL } from './schema.js'
import { denseFields, type TensorField } from './tensor/fields.js'
import { tensorOfMessage } from './tensor/from_message.js'
import { type Property, TENSOR, TYPED_FIELDS } from './tensor/header.js'
import { type PlannedMessage, planTensor } from './tensor/plan.js'

/** A tensor whose values are to be written elsewhere than they are. */
interface Move {
  readonly owner: Message
  readonly field: MessageField
  readonly tensor: DenseTensor
  /** Absent for values that go into the model. */
  readonly place?: DataPlace
}

export interface MovedValues {
  readonly replacements: Replacements
  /** Files of external data. */
  readonly siblings: readonly SiblingPlan[]
}

/**
 * Initializers of all graphs, and what has external data already, go outside or inside as the options say; tensors
 * whose data are not there, strings and unknown types stay as they stand.
 *
 * @param options - false: all values go into the model
 * @throws TileworkError ERR_ARGUMENT and what `ExternalData.finish` throws; ERR_UNSUPPORTED for a broken tensor
 */
export async function moveValues(
  model: OnnxModel,
  options: ExternalOptions | false,
  path: string | undefined,
): Promise<MovedValues> {
  const data = options === false ? undefined : new ExternalData(checkExternalOptions(options))
  const moves = [...denseFields(model.message)].flatMap((found) => moveOf(found, data) ?? [])
  const siblings = (await data?.finish(path)) ?? []
  const replacements = new Replacements()
  for (const move of moves) replacements.set(move.owner, move.field, await planMove(move, data))
  return { replacements, siblings }
}

function moveOf({ owner, field }: TensorField, data: ExternalData | undefined): Move | undefined {
  const isOutside = owner.messageOf(field)?.int('data_location') === LOCATION_EXTERNAL
  const isInitializer = owner.type === 'GraphProto'
  if (!isOutside && !(isInitializer && data)) return undefined
  const tensor = knownTensor(owner, field)
  if (tensor?.kind !== 'dense' || !tensor.hasData) return undefined
  if (data?.takes(tensor)) return { owner, field, tensor, place: data.add(tensor) }
  return isOutside ? { owner, field, tensor } : undefined
}

/** Undefined for a type that nobody knows. */
function knownTensor(owner: Message, field: MessageField): Tensor | undefined {
  if (field.kind === 'tensor') return field.tensor
  try {
    return tensorOfMessage(owner.messageOf(field)!)
  } catch (error) {
    if (error instanceof TileworkError && error.code === 'ERR_DTYPE') return undefined
    throw error
  }
}

async function planMove(
  { owner, field, tensor, place }: Move,
  data: ExternalData | undefined,
): Promise<PlannedMessage> {
  const message = owner.messageOf(field)
  if (!message) {
    const name = field.kind === 'tensor' ? field.name : tensor.name
    return planTensor(tensor, name, true, place && data!.fieldsOf(place))
  }
  if (place) {
    const fields = data!.fieldsOf(place, otherProperties(message))
    return message.planWith(VALUE_FIELDS, TENSOR.externalData, fields)
  }
  const { byteLength } = tensor.storage
  const tag = new WireWriter().lengthOf(TENSOR.rawData, byteLength).finish()
  const values: readonly WriteSegment[] = [
    { kind: 'bytes', bytes: tag },
    { kind: 'tensor', tensor },
  ]
  return message.planWith(VALUE_FIELDS, TENSOR.rawData, values)
}

/** Fields that carry values or say where they lie. */
const VALUE_FIELDS: ReadonlySet<number> = new Set([
  TENSOR.rawData,
  TENSOR.stringData,
  TENSOR.externalData,
  TENSOR.dataLocation,
  ...Object.values(TYPED_FIELDS).map(({ number }) => number),
])

/** Keys that say something of the file that the values lay in before. */
const KEYS_OF_PLACE: ReadonlySet<string> = new Set(['location', 'offset', 'length', 'checksum', 'basepath'])

/** onnxruntime's ranges of prepared weights in the same file. */
const PREPACKED = 'prepacked'

/** Properties that nobody here knows, which stay. */
function otherProperties(message: Message): Property[] {
  return message
    .messages('external_data')
    .map((entry) => ({ key: entry.text('key'), value: entry.text('value'), offset: 0 }))
    .filter(({ key }) => !KEYS_OF_PLACE.has(key) && !key.startsWith(PREPACKED))
}
