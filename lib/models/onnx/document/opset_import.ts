/** The operator sets that a model or a function imports. */
import { checkInt64, checkText } from '../../../formats/onnx/protobuf/field_input.js'
import type { Message } from '../../../formats/onnx/protobuf/message.js'
import { standardDomain } from './node.js'

/** Sets the version of one; the empty domain is ONNX itself, also where the file has `ai.onnx`. */
export function setOpsetImport(owner: Message, domain: string, version: number | bigint): void {
  checkText('The domain of an operator set', domain)
  checkInt64('The version of an operator set', version)
  const known = owner
    .messages('opset_import')
    .findLast((each) => standardDomain(each.text('domain')) === standardDomain(domain))
  const entry = known ?? owner.insert('opset_import')
  if (!known && domain !== '') entry.setText('domain', domain)
  entry.setInt('version', version)
}
