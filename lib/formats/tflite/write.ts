/** TFLite files are only read: their operators are a program that fits the tensors they have. */
import { refuseWriting } from '../write_checks.js'
import { FORMAT_NAME } from './schema.js'

export const plan = refuseWriting(FORMAT_NAME, 'save the tensors as safetensors')
