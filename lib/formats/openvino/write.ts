/** Tensors alone are not a file of this format: an IR is a program, whose constants its layers name. */
import { refuseWriting } from '../write_checks.js'
import { FORMAT_NAME } from './schema.js'

export const plan = refuseWriting(
  FORMAT_NAME,
  'save the tensors as safetensors, or edit the constants of an IR',
)
