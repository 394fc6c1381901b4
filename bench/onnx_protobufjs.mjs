/** The ONNX messages for protobufjs, built from tilework's own schema table. */
import { importInternal } from '../scripts/internals.mjs'

const { MESSAGES } = await importInternal('formats/onnx/schema')

/**
 * @param {object} protobuf - the module protobufjs
 * @returns {object} a protobufjs Root with every message
 */
export function onnxTypes(protobuf) {
  const nested = Object.fromEntries(
    Object.entries(MESSAGES).map(([message, fields]) => [
      message,
      {
        fields: Object.fromEntries(fields.filter(Boolean).map((field) => [field.name, description(field)])),
      },
    ]),
  )
  return protobuf.Root.fromJSON({ nested })
}

function description({ number, kind, isRepeated, isPacked }) {
  return {
    id: number,
    type: kind === 'enum' ? 'int32' : kind,
    ...(isRepeated && { rule: 'repeated', options: { packed: isPacked } }),
  }
}
